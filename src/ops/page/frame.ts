import type { Operator } from '../operator.ts'
import type { GatewayState } from '../../services/gateway-state.ts'
import { partsOf } from '../state.ts'
import type { ReplicasStatus } from '../state-schemas.ts'
import { time } from './format.ts'
import { type Content, html, type Html } from '../../app/hooks/html.ts'
import { hidden } from './parts.ts'
import type { OperatorSignIn } from '../sign-in.ts'

const places = [
  ['', 'Overview'],
  ['requests', 'Requests'],
  ['users', 'Users'],
  ['limits', 'Limits'],
  ['config', 'Config'],
  ['maintenance', 'Maintenance']
] as const

export type Notice = readonly [tone: 'bad' | 'warn', place: string, text: string]

/** What the address of a page asks for: its query, and its parameters. */
export type Asked = Readonly<Record<string, string | undefined>>

export interface Page {
  readonly title?: string
  readonly place: (typeof places)[number][0] | 'error'
  readonly main?: Content
}

export function frame(
  page: Page,
  operator: Operator,
  notices: readonly Notice[],
  said?: string
): Html {
  const { place, main } = page
  const { title = places.find(([path]) => path === place)?.[1] ?? 'Error' } = page
  return documentOf(
    title,
    html`<header class="side">
        <b class="brand"><img src="/ops/icon.svg" alt="" /> Console Gateway</b>
        <nav>
          ${places.map(
            ([path, name]) =>
              html`<a href="/ops/${path}" ${path === place && html`aria-current="page"`}
                >${name}</a
              >`
          )}
        </nav>
        <form method="post" action="/ops/">
          <span>
            ${operator.name}
            ${operator.until !== undefined && html`<br /><small>until ${time(operator.until)}</small>`}
          </span>
          ${hidden('act', 'sign-out')}
          ${operator.via === 'session' && html`<button>Sign out</button>`}
        </form>
      </header>
      <main id="${place === 'error' ? place : 'page'}">
        <p class="notice bad" id="lost" role="alert">
          The gateway does not answer: the numbers are old.
        </p>
        ${said !== undefined && html`<p class="notice ok" role="status">${said}</p>`}
        ${notices.map(
          ([tone, href, text]) =>
            html`<p class="notice ${tone}"><a href="/ops/${href}">${text}</a></p>`
        )}
        <h1>${title}</h1>
        ${main}
      </main>`
  )
}

export function signInPage(
  { form, providers }: Pick<OperatorSignIn, 'form' | 'providers'>,
  page: string,
  failure?: string
): Html {
  const label = (text: string, name: string, type: string, kind: string) =>
    html`<label>
      ${text} <input name="${name}" type="${type}" autocomplete="${kind}" required autofocus />
    </label>`
  const returnTo = encodeURIComponent(page)
  const isByName = form === 'password'
  const secret = isByName ? 'Password' : 'Operators’ secret (ops.secret)'
  return documentOf(
    'Sign in',
    html`<main id="sign-in">
      <form method="post" action="${page}" class="card">
        <h1>Console Gateway</h1>
        ${failure !== undefined && html`<p class="notice bad" role="alert">${failure}</p>`}
        ${isByName && label('User name', 'username', 'text', 'username')}
        ${
          form !== undefined && [
            label(secret, form, 'password', 'current-password'),
            hidden('act', 'sign-in'),
            html`<button class="primary">Sign in</button>`
          ]
        }
        ${providers.map(
          ({ name, path }) =>
            html`<a class="button" href="${path}?returnTo=${returnTo}">Sign in with ${name}</a>`
        )}
        <p>
          ${form === undefined && providers.length === 0 ? 'Run ' : 'Or run '}
          <code>console-gateway ops</code> where the gateway runs, as its user: it prints a link
          that opens this page once.
        </p>
      </form>
    </main>`
  )
}

function documentOf(title: string, body: Html): Html {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>${title} · Console Gateway</title>
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <link rel="icon" href="/ops/icon.svg" />
        <link rel="stylesheet" href="/ops/page.css" />
        <script type="module" src="/ops/live.js"></script>
      </head>
      <body>
        ${body}
      </body>
    </html>`
}

/** Texts of `partsOf` about parts that work. */
const informing: ReadonlySet<string> = new Set(['in this process', 'up'])

type Replica = ReplicasStatus['replicas'][number]
type Finding = readonly [...Notice, which: readonly string[]]

/** The notices on top of every page, each a link to the page that helps; the worst first. */
export function attention(
  state: GatewayState,
  replicas: readonly Replica[],
  lockouts: number
): Notice[] {
  const needing = Object.entries(partsOf(state)).filter(([, text]) => !informing.has(text))
  const ofParts = needing.map(([name, text]): Finding => {
    const tone = name === 'maintenance' ? 'warn' : 'bad'
    return [tone, places.some(([path]) => path === name) ? name : '', name, [text]]
  })
  const silent = replicas.filter(({ isSilent }) => isSilent)
  const differ = new Set(replicas.map(({ configHash }) => configHash)).size > 1
  const refusing = state.refusing.map(({ limit, over }) => `${limit} (${over.slice(0, 3).join()})`)
  const all: readonly Finding[] = [
    ...ofParts,
    ['bad', '', 'Replicas are silent', silent.map(placeOf)],
    ['warn', '', 'Replicas run different configs', differ ? replicas.map(placeOf) : []],
    ['warn', 'config', 'Wait for a restart', state.config.restartNeeded],
    ['warn', 'limits', 'Limits refuse requests', refusing],
    ['warn', 'users', 'Locked out of signing in', lockouts > 0 ? [String(lockouts)] : []]
  ]
  return all
    .filter(([, , , which]) => which.length > 0)
    .map(([tone, place, what, which]): Notice => [tone, place, `${what}: ${which.join(', ')}`])
    .toSorted(([one], [other]) => one.localeCompare(other))
}

function placeOf({ id, host }: Replica): string {
  return `${id} at ${host}`
}
