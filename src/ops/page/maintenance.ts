import type { ShownMaintenance } from '../maintenance.ts'
import { maintenanceInWords } from '../../services/maintenance.ts'
import { ago, time } from './format.ts'
import { html, type Html } from '../../app/hooks/html.ts'
import { act, card, type Column, pill, table } from './parts.ts'
import texts from './texts.json' with { type: 'json' }

const { heads, maintenance: words } = texts

const writing = ['POST', 'PUT', 'PATCH', 'DELETE']

type Row = ShownMaintenance['operators'][number]

const columns: ReadonlyArray<Column<Row>> = [
  [heads.bySince, '', ({ author, since }) => html`${author} <small>${time(since)}</small>`],
  [heads.what, 'wide', maintenanceInWords],
  [heads.ends, '', ({ until }) => ago(until)],
  [heads.message, 'extra', ({ message }) => message],
  [heads.act, '', ({ routes }) => routes.map(openRoute)]
]

export function maintenancePage(shown: ShownMaintenance, routes: readonly string[]): Html {
  const { operators, info } = shown
  const look = { fields: fieldsOf(routes), isDanger: true }
  const begin = act('beginMaintenance', {}, ['/maintenance'], look)
  const end = act('endMaintenance', {}, ['/maintenance/end'])
  const state = operators.length > 0 ? pill('warn', words.closed) : pill('ok', words.open)
  return html`
    ${info !== undefined && html`<p class="notice warn">${info}</p>`}
    ${card(
      { title: words.title, tools: [state, operators.length > 0 && end, begin] },
      table(operators, columns, words.none)
    )}
  `
}

function fieldsOf(routes: readonly string[]): Html {
  return html`<label>
      ${words.routes}
      <select name="routes" multiple size="${Math.min(6, routes.length + 1)}">
        <option value="" selected>${words.allRoutes}</option>
        ${routes.map(route => html`<option value="${route}">${route}</option>`)}
      </select>
    </label>
    <label><input type="checkbox" name="writing" /> ${words.writing}</label>
    <label>
      ${words.minutes}
      <input type="number" name="minutes" value="60" min="1" max="10080" required />
    </label>
    <label>${words.message} <input name="message" maxlength="500" /></label>`
}

function openRoute(route: string): Html {
  return act('openRoute', { route }, ['/maintenance/end', { routes: [route] }])
}

export function closingOf(form: URLSearchParams): object {
  const [minutes, message] = [Number(form.get('minutes')), form.get('message')]
  return {
    until: new Date(Date.now() + minutes * 60_000).toISOString(),
    routes: form.getAll('routes').filter(route => route !== ''),
    ...(form.has('writing') && { methods: writing }),
    ...(message !== null && message !== '' && { message })
  }
}
