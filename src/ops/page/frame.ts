import type { Operator } from '../operator.ts'
import type { GatewayState } from '../../services/gateway-state.ts'
import { partsOf } from '../state.ts'
import type { ReplicasStatus } from '../state-schemas.ts'
import { time } from './format.ts'
import { type Content, html, type Html } from '../../app/hooks/html.ts'
import { hidden, say } from './parts.ts'
import type { OperatorSignIn } from '../sign-in.ts'
import texts from './texts.json' with { type: 'json' }

const { places, notices: words, signIn } = texts
const linked = ['', 'requests', 'users', 'limits', 'config', 'maintenance'] as const

export type Notice = readonly [tone: 'bad' | 'warn', place: string, text: string]

/** What the address of a page asks for: its query, and its parameters. */
export type Asked = Readonly<Record<string, string | undefined>>

export interface Page {
  readonly title?: Content
  readonly place: keyof typeof places
  readonly main?: Content
}

export function frame(
  page: Page,
  operator: Operator,
  notices: readonly Notice[],
  said?: Content
): Html {
  const { place, main } = page
  const { title = places[place] } = page
  const until = operator.until && say(texts.frame.until, { time: time(operator.until) })
  return documentOf(
    title,
    html`<header class="side">
        <b class="brand"><img src="/ops/icon.svg" alt="" /> Console Gateway</b>
        <nav>
          ${linked.map(
            path =>
              html`<a href="/ops/${path}" ${path === place && html`aria-current="page"`}
                >${places[path]}</a
              >`
          )}
        </nav>
        <form method="post" action="/ops/">
          <span> ${operator.name} ${until && html`<br /><small>${until}</small>`} </span>
          ${hidden('act', 'sign-out')}
          ${operator.via === 'session' && html`<button>${texts.frame.signOut}</button>`}
        </form>
      </header>
      <main id="${place === 'error' ? place : 'page'}">
        <p class="notice bad" id="lost" role="alert">${texts.frame.lost}</p>
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
  const secret = isByName ? signIn.password : signIn.secret
  return documentOf(
    signIn.title,
    html`<main id="sign-in">
      <form method="post" action="${page}" class="card">
        <h1>Console Gateway</h1>
        ${failure !== undefined && html`<p class="notice bad" role="alert">${failure}</p>`}
        ${isByName && label(signIn.username, 'username', 'text', 'username')}
        ${
          form !== undefined && [
            label(secret, form, 'password', 'current-password'),
            hidden('act', 'sign-in'),
            html`<button class="primary">${signIn.button}</button>`
          ]
        }
        ${providers.map(
          ({ name, path }) =>
            html`<a class="button" href="${path}?returnTo=${returnTo}"
              >${say(signIn.provider, { name })}</a
            >`
        )}
        <p>${say(form === undefined && providers.length === 0 ? signIn.link : signIn.orLink)}</p>
      </form>
    </main>`
  )
}

function documentOf(title: Content, body: Html): Html {
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
    return [tone, Object.hasOwn(places, name) ? name : '', name, [text]]
  })
  const silent = replicas.filter(({ isSilent }) => isSilent)
  const differ = new Set(replicas.map(({ configHash }) => configHash)).size > 1
  const refusing = state.refusing.map(({ limit, over }) => `${limit} (${over.slice(0, 3).join()})`)
  const all: readonly Finding[] = [
    ...ofParts,
    ['bad', '', words.silent, silent.map(placeOf)],
    ['warn', '', words.differ, differ ? replicas.map(placeOf) : []],
    ['warn', 'config', words.restart, state.config.restartNeeded],
    ['warn', 'limits', words.refuse, refusing],
    ['warn', 'users', words.lockedOut, lockouts > 0 ? [String(lockouts)] : []]
  ]
  return all
    .filter(([, , , which]) => which.length > 0)
    .map(([tone, place, what, which]): Notice => [tone, place, `${what}: ${which.join(', ')}`])
    .toSorted(([one], [other]) => one.localeCompare(other))
}

function placeOf({ id, host }: Replica): string {
  return `${id} (${host})`
}
