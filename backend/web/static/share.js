// The dialog in which a conversation is shared by a link, and the link that downloads it.
import { translate } from "./messages.js";
import { Problem, send } from "./stream.js";
import { make, replaceControls } from "./text.js";

const element = (id) => document.getElementById(id);
const url = (id) => `/api/conversations/${encodeURIComponent(id)}/share`;
const LONGEST = 80;

/** `shown()` returns {id, messages} of the conversation that is open. */
export function watchSharing(shown) {
  const dialog = element("sharing");
  let id = null;

  function say(text) {
    element("sharing-said").textContent = text;
  }

  function show(share) {
    element("sharing-link").hidden = element("sharing-end").hidden = !share;
    element("sharing-address").value = share ? new URL(share.path, location.href).href : "";
    element("sharing-go").textContent = share ? translate("Share up to here") : translate("Create link");
    if (share) element("sharing-until").value = String(share.message_id);
    if (!element("sharing-until").value) element("sharing-until").selectedIndex = element("sharing-until").length - 1;
  }

  async function attempt(act) {
    for (const button of dialog.querySelectorAll("button")) button.disabled = true;
    try {
      await act();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      say(replaceControls(error.sentence));
    }
    for (const button of dialog.querySelectorAll("button")) button.disabled = false;
    element("sharing-go").disabled = !element("sharing-until").length;
  }

  element("share").addEventListener("click", () => {
    const open = shown();
    id = open.id;
    say("");
    element("sharing-until").replaceChildren(...choices(open.messages));
    element("sharing-until").selectedIndex = element("sharing-until").length - 1;
    show(null);
    dialog.showModal();
    attempt(async () => {
      const { share } = await send("GET", url(id));
      show(share);
      if (!element("sharing-until").length) say(translate("There is no answer to share yet."));
    });
  });
  element("sharing-go").addEventListener("click", () =>
    attempt(async () => {
      show(await send("POST", url(id), { message_id: Number(element("sharing-until").value) }));
      say(translate("It is shared."));
      element("sharing-address").select();
    }),
  );
  element("sharing-end").addEventListener("click", () =>
    attempt(async () => {
      await send("DELETE", url(id));
      show(null);
      say(translate("It is not shared any more. The link leads nowhere."));
      element("sharing-go").focus();
    }),
  );
  element("sharing-copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(element("sharing-address").value);
      say(translate("Copied."));
    } catch {
      element("sharing-address").select();
      say(translate("The browser did not allow copying. The link is selected."));
    }
  });
}

/** The answers that are complete, each named by its question. */
function choices(messages) {
  return messages
    .map((message, at) => ({ message, question: messages[at - 1]?.text ?? "" }))
    .filter(({ message }) => message.role === "assistant" && message.status !== "running")
    .map(({ message, question }) => make("option", { value: message.id }, replaceControls(question).slice(0, LONGEST)));
}

/** Offer what can be done with the conversation that is open, if one is. */
export function offerSharing(conversation) {
  element("share").hidden = element("download").hidden = !conversation;
  if (conversation) element("download").href = `/api/conversations/${encodeURIComponent(conversation.id)}/export`;
}
