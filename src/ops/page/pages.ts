/** The pages' routes: a GET shows one; a form signs in or acts, and leads back to it. */
import { readFileSync } from 'node:fs'
import cookie from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Content, html, type Html } from '../../app/hooks/html.ts'
import { sendHop } from '../../app/hooks/pages.ts'
import { createLanding, queryOf } from '../../app/sign-in/flows.ts'
import { GatewayError } from '../../errors/errors.ts'
import { type LimitRow, limitsOf } from '../limits.ts'
import { listLockouts } from '../lockouts.ts'
import { closableRoutes, maintenanceOf } from '../maintenance.ts'
import { type Desk, runAct } from '../routes.ts'
import { prepareError } from '../server.ts'
import type { OperatorSignIn } from '../sign-in.ts'
import { configPage } from './config.ts'
import { duration, number, percent } from './format.ts'
import { type Asked, attention, frame, type Page, signInPage } from './frame.ts'
import { closingOf, maintenancePage } from './maintenance.ts'
import { overview } from './overview.ts'
import { card, type Column, linkTo, pill, say, table } from './parts.ts'
import { requestsView, requestView } from './requests.ts'
import { usersView } from './users.ts'
import texts from './texts.json' with { type: 'json' }

const { frame: ofFrame, heads, limits: words, signIn: ofSignIn } = texts
const callersShown = 5

const limitColumns: ReadonlyArray<Column<LimitRow>> = [
  [heads.limit, '', ({ limit, by }) => html`${limit} <small>${say(words.by, { by })}</small>`],
  [heads.mode, 'extra', ({ mode }) => pill(mode === 'enforce' ? 'ok' : 'plain', mode)],
  [heads.number, 'number', ({ max, windowMs }) => `${number(max)} / ${duration(windowMs)}`],
  [heads.hour, 'number', ({ hour }) => number(hour?.used)],
  [heads.ofIt, 'number', ({ hour, max }) => percent((hour?.used ?? 0) / max)],
  [heads.day, 'number extra', ({ day }) => number(day?.used)],
  [heads.over, 'wide', overOrNear]
]

type View = (desk: Desk, asked: Asked) => Promise<Page>

const views: Readonly<Record<string, View>> = {
  '/ops/': async ({ present, replicas }) => ({
    place: '',
    main: overview(present.read(), present.past, await replicas())
  }),
  '/ops/requests': requestsView,
  '/ops/requests/:id': requestView,
  '/ops/users': usersView,
  '/ops/limits': async desk => ({ place: 'limits', main: limitsPage(limitsOf(desk)) }),
  '/ops/config': async ({ state, plan }) => ({
    place: 'config',
    main: configPage(state().config, await plan())
  }),
  '/ops/maintenance': async desk => ({
    place: 'maintenance',
    main: maintenancePage(maintenanceOf(desk), closableRoutes(desk))
  })
}

/** Gives the address of a page, with its query, if it is one; else the first page. */
const toPage = createLanding('/ops', path => /^\/ops\/(?:link|sign-in)\//.test(path))

function addressOf({ url }: FastifyRequest): URL {
  return new URL(`http://ops${url}`)
}

const files = [
  ['page.css', 'text/css; charset=utf-8'],
  ['live.js', 'text/javascript; charset=utf-8'],
  ['icon.svg', 'image/svg+xml']
] as const

const open = { config: { isOpen: true } }
/** A HEAD, of a program that looks at links, must not use a link or a sign-in up. */
const once = { ...open, exposeHeadRoute: false }

export function addPages(ops: FastifyInstance, signIn: OperatorSignIn, desk: Desk): void {
  addFiles(ops)
  for (const path of ['/', '/ops']) {
    ops.get(path, open, async (_request, reply) => await reply.redirect('/ops/', 302))
  }
  ops.register(async scope => {
    const type = 'application/x-www-form-urlencoded'
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(type, { parseAs: 'string' }, (_request, body, done) =>
      done(null, new URLSearchParams(String(body)))
    )
    scope.addHook('onRequest', async (_request, reply) => {
      // With `no-referrer` browsers say no `Origin` of a form.
      reply.header('referrer-policy', 'same-origin').type('text/html; charset=utf-8')
    })
    scope.setErrorHandler(async (thrown, { operator }, reply) => {
      const { error } = prepareError(thrown, reply)
      if (operator === undefined) {
        return await reply.send(signInPage(signIn, pageOf(reply.request), error).text)
      }
      const main = html`<p class="notice bad" role="alert">${error}</p>`
      const page = { place: 'error', main } as const
      return await reply.send(frame(page, operator, await notices(desk)).text)
    })
    for (const [path, view] of Object.entries(views)) {
      scope.get(path, open, async request => {
        const { operator } = request
        const { searchParams } = addressOf(request)
        if (operator === undefined) {
          const failure = searchParams.has('link') ? ofSignIn.linkOver : undefined
          return signInPage(signIn, pageOf(request), failure).text
        }
        // An address holds no text of its own.
        const done = ops.acts.get(searchParams.get('done') ?? '')
        const said = done && say(ofFrame.done, { act: done.summary })
        const asked = { ...Object.fromEntries(searchParams), ...(request.params as object) }
        return frame(await view(desk, asked), operator, await notices(desk), said).text
      })
      scope.post(path, open, async (_request, reply) => {
        return await reply.redirect(await submit(signIn, reply), 303)
      })
    }
    addProviders(scope, signIn)
    scope.get<{ Params: { token: string } }>('/ops/link/:token', once, async (request, reply) => {
      const isGood = await signIn.byLink(reply, request.params.token)
      return await reply.redirect(isGood ? '/ops/' : '/ops/?link=over', 303)
    })
  })
}

async function notices(desk: Desk) {
  const { total } = await listLockouts(desk).catch(() => ({ total: 0 }))
  return attention(desk.state(), (await desk.replicas()).replicas, total)
}

async function submit({ byForm, signOut }: OperatorSignIn, reply: FastifyReply): Promise<string> {
  const { request } = reply
  const form = request.body instanceof URLSearchParams ? request.body : new URLSearchParams()
  const act = form.get('act') ?? ''
  const page = new URL(pageOf(request), 'http://ops')
  if (act === 'sign-in') {
    await byForm(reply, form)
  } else if (request.operator === undefined) {
    throw new GatewayError('ops.session')
  } else if (act === 'sign-out') {
    await signOut(reply)
  } else {
    const { outcome }: { readonly outcome?: string } = await runAct(act, bodyOf(form), request)
    if (outcome !== 'refused') page.searchParams.set('done', act)
  }
  return page.pathname + page.search
}

function pageOf(request: FastifyRequest): string {
  const page = addressOf(request)
  for (const name of ['done', 'link']) page.searchParams.delete(name)
  return toPage(page.pathname + page.search)
}

function bodyOf(form: URLSearchParams): object {
  return {
    ...(JSON.parse(form.get('body') ?? '{}') as object),
    ...(form.get('yes') === 'on' && { yes: true }),
    ...(form.has('minutes') && closingOf(form))
  }
}

function addFiles(ops: FastifyInstance): void {
  for (const [file, type] of files) {
    const body = readFileSync(new URL(file, import.meta.url))
    ops.get(`/ops/${file}`, open, async (_request, reply) => {
      return await reply.type(type).header('cache-control', 'max-age=60').send(body)
    })
  }
}

/** By three addresses, as at the console. */
function addProviders(scope: FastifyInstance, { providers }: OperatorSignIn): void {
  scope.register(cookie)
  for (const { path, begin, finish } of providers) {
    scope.get(path, once, async (request, reply) => {
      const { returnTo } = request.query as Record<string, unknown>
      return reply.redirect(await begin(reply, toPage(returnTo)), 302)
    })
    scope.get(`${path}/callback`, once, (request, reply) =>
      sendHop(reply, `${path}/finish?${queryOf(request)}`)
    )
    scope.get(`${path}/finish`, once, async (_request, reply) =>
      reply.redirect((await finish(reply)) ?? '/ops/', 303)
    )
  }
}

function overOrNear({ over, nearest }: LimitRow): Content {
  const callers = new Set([...over, ...nearest.map(({ caller }) => caller)])
  return [...callers].slice(0, callersShown).map(caller => {
    const mark = over.includes(caller) && [' ', pill('bad', words.over)]
    return [linkTo('users', { search: caller }, caller), mark, ' ']
  })
}

function limitsPage(limits: readonly LimitRow[]): Html {
  return html`
    ${card({ title: words.title, count: limits.length }, table(limits, limitColumns, words.none))}
    <p class="empty">${words.counted}</p>
  `
}
