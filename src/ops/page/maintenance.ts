import type { ShownMaintenance } from '../maintenance.ts'
import { maintenanceInWords } from '../../services/maintenance.ts'
import { ago, time } from './format.ts'
import { html, type Html } from '../../app/hooks/html.ts'
import { act, card, type Column, pill, table } from './parts.ts'

const writing = ['POST', 'PUT', 'PATCH', 'DELETE']

type Row = ShownMaintenance['operators'][number]

const columns: ReadonlyArray<Column<Row>> = [
  ['By', '', ({ author, since }) => html`${author} <small>since ${time(since)}</small>`],
  ['What', 'wide', maintenanceInWords],
  ['Ends', '', ({ until }) => ago(until)],
  ['Message', 'extra', ({ message }) => message],
  ['Act', '', ({ routes }) => routes.map(openRoute)]
]

export function maintenancePage(shown: ShownMaintenance, routes: readonly string[]): Html {
  const { operators, info } = shown
  const ofBegin = 'Requests to what is closed are answered 503, with the message, until the end.'
  const look = { fields: fieldsOf(routes), isDanger: true }
  const begin = act('Begin maintenance', ofBegin, ['/maintenance'], look)
  const end = act('End all', 'Opens all that operators closed, at once.', ['/maintenance/end'])
  const state = operators.length > 0 ? pill('warn', 'closed') : pill('ok', 'open')
  return html`
    ${info !== undefined && html`<p class="notice warn">${info}</p>`}
    ${card(
      { title: 'Closed', tools: [state, operators.length > 0 && end, begin] },
      table(operators, columns, 'Nothing is closed.')
    )}
  `
}

function fieldsOf(routes: readonly string[]): Html {
  return html`<label>
      Routes to close
      <select name="routes" multiple size="${Math.min(6, routes.length + 1)}">
        <option value="" selected>all routes</option>
        ${routes.map(route => html`<option value="${route}">${route}</option>`)}
      </select>
    </label>
    <label><input type="checkbox" name="writing" /> Only what changes data</label>
    <label>
      Minutes <input type="number" name="minutes" value="60" min="1" max="10080" required />
    </label>
    <label>Message for users <input name="message" maxlength="500" /></label>`
}

function openRoute(route: string): Html {
  const text = `Users can work with ${route} again, at once.`
  return act(`Open ${route}`, text, ['/maintenance/end', { routes: [route] }])
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
