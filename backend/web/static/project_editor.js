// The editor of a project: its form needs no script, the try-out beside it does.
import { watchTryOut } from "./try_out.js";

const instructions = document.getElementById("instructions");
watchTryOut(() => ({ instructions: instructions.value }));
