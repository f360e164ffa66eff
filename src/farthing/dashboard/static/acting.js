// Changes: only where the server allows them.

import { isReport } from "./api.js";

export function tools(about) {
  return about.may_change && !isReport ? null : null;
}

export function trialTools() {
  return null;
}
