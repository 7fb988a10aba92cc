import { ComedorApi, Configuration } from "./comedor/index.js";

const site = "https://school.example";
const school = `${site}/entreaulas`;
const fields = new URLSearchParams({ user: "…", password: "…" });
const login = await fetch(`${site}/_login.php`, { method: "POST", body: fields, redirect: "manual" });
const cookie = login.headers.get("set-cookie")?.match(/PHPSESSID=[^;]+/)?.[0] ?? "";

const api = new ComedorApi(new Configuration({ basePath: school, headers: { Cookie: cookie } }));
const { menu, menuType } = await api.getMenu({ action: "get_menu", aulario: "aula1", menu: "basal" });
if (menuType !== "basal") throw new Error(`the answer is for ${menuType}`);
for (const [key, plate] of Object.entries(menu.plates)) console.log(`${key}: ${plate.name}`);
