/** The entry of the script of the device's threads. */

import { serveElement } from "./element.ts";

serveElement();
