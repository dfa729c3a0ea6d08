// The editor of a project: only what was changed in it is sent, and what stands in it can be tried beside it.
import { watchTryOut } from "./try_out.js";

const instructions = document.getElementById("instructions");

// What is not sent stays as it is: another page may have changed it since this one was opened.
instructions.form.addEventListener("formdata", ({ formData }) => {
  for (const field of instructions.form.querySelectorAll("input[type=text], textarea")) {
    // What was refused is shown again, and is not stored.
    if (field.value === field.dataset.stored) formData.delete(field.name);
  }
});

watchTryOut(() => ({ instructions: instructions.value }));
