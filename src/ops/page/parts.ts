import { type Content, html, type Html } from '../../app/hooks/html.ts'
import texts from './texts.json' with { type: 'json' }

export type Tone = 'ok' | 'warn' | 'bad' | 'plain'

const signs: Readonly<Record<Tone, string>> = { ok: '✓ ', warn: '▲ ', bad: '✕ ', plain: '' }

/** A text with its `{name}`s filled. What stands in backticks is code. */
export function say(text: string, values: Readonly<Record<string, Content>> = {}): Content {
  return text.split(/(\{\w+\}|`[^`]*`)/).map((part, index) => {
    if (index % 2 === 0) return part
    const inside = part.slice(1, -1)
    return part.startsWith('`') ? html`<code>${inside}</code>` : (values[inside] ?? part)
  })
}

/** A state as a word with a sign: never by its colour alone. */
export function pill(tone: Tone, text: Content): Html {
  return html`<span class="pill ${tone}">${signs[tone]}${text}</span>`
}

interface Card {
  readonly title: Content
  readonly count?: Content
  readonly tools?: Content
}

export function card({ title, count, tools }: Card, ...content: readonly Content[]): Html {
  return html`<section class="card">
    <header>
      <h2>${title} ${count !== undefined && html`<small>${count}</small>`}</h2>
      <div class="tools">${tools}</div>
    </header>
    ${content}
  </section>`
}

/** `wide` takes the room in one line, `text` in several; `extra` is left out on phones. */
type Kind = '' | 'number' | 'wide' | 'text' | 'extra' | 'number extra'

export type Column<T> = readonly [head: string, kind: Kind, cell: (row: T) => Content]

export function table<T>(
  rows: readonly T[],
  columns: ReadonlyArray<Column<T>>,
  empty: Content
): Html {
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`
  const line = (cells: Content) =>
    html`<tr>
      ${cells}
    </tr>`
  const heads = columns.map(([head, kind]) => html`<th class="${kind}">${head}</th>`)
  const cellsOf = (row: T) =>
    columns.map(([, kind, cell]) => html`<td class="${kind}">${cell(row)}</td>`)
  return html`<div class="scroll" tabindex="0">
    <table>
      <thead>
        ${line(heads)}
      </thead>
      <tbody>
        ${rows.map(row => line(cellsOf(row)))}
      </tbody>
    </table>
  </div>`
}

export function list(title: string, lines: readonly Content[]): Html | false {
  return (
    lines.length > 0 &&
    html`<h3>${title}</h3>
      <ul class="mono">
        ${lines.map(line => html`<li>${line}</li>`)}
      </ul>`
  )
}

/** A button that asks first, in a popover of the browser: without scripts. */
export function act(
  name: keyof typeof texts.acts,
  values: Readonly<Record<string, Content>>,
  [path, body]: readonly [path: string, body?: object],
  { fields, isDanger = false }: { readonly fields?: Content; readonly isDanger?: boolean } = {}
): Html {
  const label = say(texts.acts[name].label, values)
  const json = JSON.stringify(body ?? {})
  const id = encodeURIComponent(`act ${path} ${json}`)
  return html`<button popovertarget="${id}" class="${isDanger && 'danger'}">${label}</button>
    <form popover id="${id}" method="post">
      <h2>${label}?</h2>
      <p>${say(texts.acts[name].text, values)}</p>
      ${hidden('act', path)} ${hidden('body', json)} ${fields}
      <footer>
        <button type="button" popovertarget="${id}" popovertargetaction="hide">
          ${texts.frame.cancel}
        </button>
        <button class="primary">${label}</button>
      </footer>
    </form>`
}

export function hidden(name: string, value: string): Html {
  return html`<input type="hidden" name="${name}" value="${value}" />`
}

/** A form that asks by GET, so that what it shows has an address. */
export function filters(...fields: readonly Content[]): Html {
  return html`<form class="filters">
    ${fields}
    <button>${texts.frame.show}</button>
  </form>`
}

export function field(name: string, label: string, value = ''): Html {
  return html`<input
    type="search"
    name="${name}"
    value="${value}"
    placeholder="${label}"
    aria-label="${label}"
  />`
}

export function linkTo(path: string, query: Readonly<Record<string, string>>, text: Content): Html {
  return html`<a href="/ops/${path}?${new URLSearchParams(query).toString()}">${text}</a>`
}
