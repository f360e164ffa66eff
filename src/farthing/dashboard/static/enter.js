// The page that comes with the token: keeps the secret of changes, and asks for the dashboard without the token.

import { keepSecret } from "./api.js";

keepSecret(document.querySelector("meta[name=farthing-secret]").content);
location.replace(`./${location.hash}`);
