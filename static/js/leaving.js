// Signing out takes the copies of what was typed along: the next person at this browser finds nothing.

import { copiesOf, isSaved } from "./typed.js";

document.querySelector("[data-sign-out]")?.addEventListener("submit", (event) => {
  const copies = copiesOf(event.target.dataset.signOut);
  const question = "Some of your text is not saved yet and will be lost if you sign out. Sign out?";
  if (!copies.every(isSaved) && !window.confirm(question)) event.preventDefault();
  else copies.forEach((key) => localStorage.removeItem(key));
});
