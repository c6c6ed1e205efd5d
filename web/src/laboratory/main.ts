// The list of runs while it is looked at: progress and ends of runs as they come, and what --write allows.

/** A run that is new or has changed, as the server sends it: RunChangeDocument. */
interface RunChange {
  id: string;
  short: string;
  status: string;
  label: string | null;
  title: string | null;
  iterations: number;
  planned: number;
}

const news = document.querySelector<HTMLElement>("[data-news]");
const newest = news?.dataset["newest"] ?? "";
const unseen = new Set<string>();

function follow(): void {
  const feed = new EventSource("/api/v1/events");
  feed.addEventListener("run", (event) => show(JSON.parse((event as MessageEvent<string>).data) as RunChange));
  feed.addEventListener("lost", () => location.reload());
  addEventListener("pagehide", () => feed.close());
}

function show(run: RunChange): void {
  const row = document.querySelector<HTMLElement>(`tr[data-run="${CSS.escape(run.id)}"]`);
  if (row !== null) showInRow(row, run);
  else if (run.id > newest && run.status !== "removed") {
    unseen.add(run.id);
    announce();
  }
}

function showInRow(row: HTMLElement, run: RunChange): void {
  const cell = (name: string) => row.querySelector<HTMLElement>(`[data-cell=${name}]`);
  const status = cell("status");
  if (status !== null) {
    status.replaceChildren(run.status);
    if (run.status === "running") {
      const progress = document.createElement("progress");
      progress.max = Math.max(run.planned, 1);
      progress.value = run.iterations;
      progress.setAttribute("aria-label", `iterations of ${run.short}`);
      status.append(" ", progress);
    }
  }
  cell("label")?.replaceChildren(run.label ?? "");
  if (run.status !== "removed" && run.status !== "damaged") cell("done")?.replaceChildren(`${run.iterations}/${run.planned}`);
}

function announce(): void {
  if (news === null) return;
  const link = document.createElement("a");
  link.href = location.href;
  link.textContent = "show them";
  news.replaceChildren(unseen.size === 1 ? "1 new run: " : `${unseen.size} new runs: `, link);
  news.hidden = false;
}

if (news !== null) follow();

/** Forms that write: with the key of this start, which no page of another site has. */
for (const form of document.querySelectorAll<HTMLFormElement>("form[data-post]")) {
  for (const button of form.querySelectorAll("button")) button.disabled = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void post(form);
  });
}

async function post(form: HTMLFormElement): Promise<void> {
  const values = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, name === "label" && value === "" ? null : value]));
  const refused = form.querySelector<HTMLElement>("[data-refused]") ?? document.querySelector<HTMLElement>("[data-refused]");
  try {
    const headers = { "Content-Type": "application/json", "X-Perflab-Key": form.dataset["key"] ?? "" };
    const reply = await fetch(form.dataset["post"] ?? "", { method: "POST", headers, body: JSON.stringify(values) });
    if (reply.ok) return location.reload();
    const { error } = (await reply.json()) as { error: string };
    refused?.replaceChildren(error);
  } catch (error) {
    refused?.replaceChildren(`perflab serve does not answer: ${String(error)}`);
  }
}
