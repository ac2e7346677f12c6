import type { KeptRequest } from '../../observability/failures.ts'
import { storyOf, type Step } from '../../observability/request-story.ts'
import { type Content, html, type Html } from '../../app/hooks/html.ts'
import type { Desk } from '../routes.ts'
import { duration, time } from './format.ts'
import type { Asked, Page } from './frame.ts'
import { card, type Column, field, filters, hidden, linkTo, pill, table } from './parts.ts'

const statuses = [
  ['failed', 'Refused and failed'],
  ['', 'All that are kept'],
  ['4xx', '4xx'],
  ['5xx', '5xx']
] as const
const barWidth = 120
const kept = 'requests that failed or were refused, took more than a second, or were no GET'

const columns: ReadonlyArray<Column<KeptRequest>> = [
  ['Time', '', ({ at, requestId: id }) => html`<a href="/ops/requests/${id}">${time(at)}</a>`],
  ['Status', '', statusOf],
  ['Request', 'wide', ({ method, path }) => html`<code>${method} ${path}</code>`],
  ['Why', '', whyOf],
  ['User', 'extra', userOf],
  ['Took', 'number extra', ({ ms }) => duration(ms)]
]

export async function requestsView(
  { failures }: Desk,
  { status = 'failed', route = '', user = '', id = '' }: Asked
): Promise<Page> {
  // A field that is empty asks for nothing.
  const wanted = Object.entries({ status, route, user, id }).filter(([, value]) => value !== '')
  const found = await failures.find(Object.fromEntries(wanted))
  const { requests, hasMore, oldestAt, problem } = found
  const main = html`
    ${filters(
      hidden('status', status),
      field('route', 'Route, by its name', route),
      field('user', 'User, by name or id', user),
      field('id', 'Request id'),
      statuses.map(([each, text]) =>
        each === status
          ? html`<b>${text}</b>`
          : linkTo('requests', { status: each, route, user }, text)
      )
    )}
    ${problem !== undefined && html`<p class="notice warn">${problem}.</p>`}
    ${requestsCard(requests, hasMore)}
    <p class="empty">
      Kept are ${kept}${oldestAt !== undefined && `, since ${time(oldestAt)}`}. The access log has
      all.
    </p>
  `
  return { place: 'requests', main }
}

export function requestsCard(requests: readonly KeptRequest[], hasMore: boolean): Html {
  const count = hasMore ? `the last ${requests.length}` : requests.length
  return card({ title: 'Requests', count }, table(requests, columns, 'No request fits.'))
}

function statusOf({ status, errorStatus = status, code, isCut }: KeptRequest): Html {
  if (isCut === true) return pill('bad', `${status} cut`)
  const shown = errorStatus === status ? status : `${errorStatus} as ${status}`
  if (errorStatus >= 500) return pill('bad', shown)
  return pill(errorStatus >= 400 || code !== undefined ? 'warn' : 'ok', shown)
}

function whyOf(request: KeptRequest): string {
  const { code = '', limit, limitMax, needsRoles, attempts = [], isFallback } = request
  if (limit !== undefined) return `limit ${limit}${limitMax === undefined ? '' : ` (${limitMax})`}`
  if (needsRoles !== undefined) return `needs the role ${needsRoles.join(' or ')}`
  const failed = attempts.find(({ failure }) => failure !== undefined)
  if (failed !== undefined) return `${failed.upstream}: ${failed.reason ?? failed.failure}`
  return isFallback === true ? 'fallback' : code
}

function userOf({ user, userId, source }: KeptRequest): string | Html {
  if (userId === undefined || source === undefined) return user ?? '–'
  return linkTo('users', { user: userId, source }, user ?? userId)
}

/** All requests of one id: clients may use an id more than once. */
export async function requestView({ failures }: Desk, { id = '' }: Asked): Promise<Page> {
  const { requests } = await failures.find({ id })
  const notKept = html`<p class="notice warn">No request of this id is kept. Kept are ${kept}.</p>`
  const main = requests.length > 0 ? requests.map(storyCard) : notKept
  return { title: `Request ${id}`, place: 'requests', main }
}

function storyCard(request: KeptRequest): Html {
  const { method, path, route, user, ms } = request
  const others = linkTo('requests', { route, status: '' }, 'Requests of the route')
  const title = html`${statusOf(request)} <code>${method} ${path}</code>`
  return card(
    { title, tools: [user !== undefined && html`User ${userOf(request)}`, others] },
    table(storyOf(request), stepColumns(ms), '')
  )
}

/** Advice names commands and keys in backticks. */
function withCode(text: string): Content {
  return text.split('`').map((part, index) => (index % 2 === 0 ? part : html`<code>${part}</code>`))
}

function stepColumns(totalMs: number): ReadonlyArray<Column<Step>> {
  const share = (ms: number) => Math.min(1, Math.max(0, ms / totalMs)) * barWidth
  const bar = ({ atMs = 0, ms }: Step) =>
    ms !== undefined &&
    html`<svg width="${barWidth}" height="6" class="accent" fill="currentColor" aria-hidden="true">
      <rect width="${barWidth}" height="6" opacity="0.15" />
      <rect x="${share(atMs)}" width="${Math.max(1, share(ms))}" height="6" />
    </svg>`
  return [
    ['Step', '', ({ name }) => name],
    ['What happened', 'text', ({ text }) => withCode(text)],
    ['When', 'extra', bar],
    ['Took', 'number', ({ ms }) => ms !== undefined && duration(ms)]
  ]
}
