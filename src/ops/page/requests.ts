import type { KeptRequest } from '../../observability/failures.ts'
import { storyOf, type Step } from '../../observability/request-story.ts'
import { type Content, html, type Html } from '../../app/hooks/html.ts'
import type { Desk } from '../routes.ts'
import { duration, time } from './format.ts'
import type { Asked, Page } from './frame.ts'
import { card, type Column, field, filters, hidden, linkTo, pill, say, table } from './parts.ts'
import texts from './texts.json' with { type: 'json' }

const { heads, requests: words } = texts
const statuses = ['failed', '', '4xx', '5xx'] as const
const barWidth = 120

const columns: ReadonlyArray<Column<KeptRequest>> = [
  [heads.time, '', ({ at, requestId: id }) => html`<a href="/ops/requests/${id}">${time(at)}</a>`],
  [heads.status, '', statusOf],
  [heads.request, 'wide', ({ method, path }) => html`<code>${method} ${path}</code>`],
  [heads.why, '', whyOf],
  [heads.user, 'extra', userOf],
  [heads.took, 'number extra', ({ ms }) => duration(ms)]
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
      field('route', words.route, route),
      field('user', words.user, user),
      field('id', words.id)
    )}
    <p class="tools">
      ${statuses.map(each =>
        each === status
          ? html`<b>${words[each]}</b>`
          : linkTo('requests', { status: each, route, user }, words[each])
      )}
    </p>
    ${problem !== undefined && html`<p class="notice warn">${problem}.</p>`}
    ${requestsCard(requests, hasMore)}
    <p class="empty">
      ${words.kept} ${oldestAt !== undefined && say(words.since, { time: time(oldestAt) })}
      ${words.log}
    </p>
  `
  return { place: 'requests', main }
}

export function requestsCard(requests: readonly KeptRequest[], hasMore: boolean): Html {
  const number = requests.length
  const count = hasMore ? say(words.last, { number }) : number
  return card({ title: texts.places.requests, count }, table(requests, columns, words.none))
}

function statusOf({ status, errorStatus = status, code, isCut }: KeptRequest): Html {
  if (isCut === true) return pill('bad', say(words.cut, { status }))
  const shown = errorStatus === status ? status : say(words.as, { errorStatus, status })
  if (errorStatus >= 500) return pill('bad', shown)
  return pill(errorStatus >= 400 || code !== undefined ? 'warn' : 'ok', shown)
}

function whyOf(request: KeptRequest): Content {
  const { code = '', limit, needsRoles, attempts = [], isFallback } = request
  if (limit !== undefined) return say(words.byLimit, { limit })
  if (needsRoles !== undefined) return say(words.byRole, { roles: needsRoles.join(words.or) })
  const failed = attempts.find(({ failure }) => failure !== undefined)
  if (failed !== undefined) return `${failed.upstream}: ${failed.reason ?? failed.failure}`
  return isFallback === true ? words.fallback : code
}

function userOf({ user, userId, source }: KeptRequest): string | Html {
  if (userId === undefined || source === undefined) return user ?? '–'
  return linkTo('users', { user: userId, source }, user ?? userId)
}

/** All requests of one id: clients may use an id more than once. */
export async function requestView({ failures }: Desk, { id = '' }: Asked): Promise<Page> {
  const { requests } = await failures.find({ id })
  const notKept = html`<p class="notice warn">${words.notKept} ${words.kept}</p>`
  const main = requests.length > 0 ? requests.map(storyCard) : notKept
  return { title: say(words.title, { id }), place: 'requests', main }
}

function storyCard(request: KeptRequest): Html {
  const { method, path, route, user, ms } = request
  const others = linkTo('requests', { route, status: '' }, words.ofRoute)
  const title = html`${statusOf(request)} <code>${method} ${path}</code>`
  return card(
    { title, tools: [user !== undefined && say(words.byUser, { user: userOf(request) }), others] },
    table(storyOf(request), stepColumns(ms), '')
  )
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
    [heads.step, '', ({ name }) => name],
    [heads.happened, 'text', ({ text }) => say(text)],
    [heads.when, 'extra', bar],
    [heads.took, 'number', ({ ms }) => ms !== undefined && duration(ms)]
  ]
}
