/** The pages' routes: a GET shows one; a form signs in or acts, and leads back to it. */
import { readFileSync } from 'node:fs'
import cookie from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { runAct } from '../routes.ts'
import { GatewayError } from '../../errors/errors.ts'
import { prepareError } from '../responses.ts'
import { listLockouts } from '../lockouts.ts'
import type { OperatorSignIn } from '../sign-in.ts'
import { attention, frame, signInPage } from './frame.ts'
import { html } from '../../app/hooks/html.ts'
import { sendHop } from '../../app/hooks/pages.ts'
import { queryOf } from '../../app/sign-in/flows.ts'
import { closingOf } from './maintenance.ts'
import { addressOf, type PageData, toPage, views } from './views.ts'

const files = [
  ['page.css', 'text/css; charset=utf-8'],
  ['live.js', 'text/javascript; charset=utf-8'],
  ['icon.svg', 'image/svg+xml']
] as const

/** By the path of an act, and its outcome where it has one: an address holds no text of its own. */
const doneTexts: Readonly<Record<string, string>> = {
  '/sessions/close': 'The sessions have ended.',
  '/limits/caller/reset': 'The limits count anew.',
  '/lockouts/lift': 'The lockout is lifted.',
  '/users/block': 'The user is blocked.',
  '/users/unblock': 'The user may sign in again.',
  '/keys/revoke': 'The key is revoked.',
  '/maintenance': 'The maintenance is begun.',
  '/maintenance/end': 'What operators closed is open again.',
  '/reload reloaded': 'The config of the files runs.',
  '/reload unchanged': 'The files hold what runs: nothing to reload.',
  '/reload refused': 'The files were refused: what ran before runs on.'
}

const linkOver = 'This link was used before, or is too old.'

export function addPages(ops: FastifyInstance, signIn: OperatorSignIn, data: PageData): void {
  addFiles(ops)
  const config = { isOpen: true }
  for (const path of ['/', '/ops']) {
    ops.get(path, { config }, async (_request, reply) => await reply.redirect('/ops/', 302))
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
      return await reply.send(frame(page, operator, await notices(data)).text)
    })
    for (const [path, view] of Object.entries(views)) {
      scope.get(path, { config }, async request => {
        const { operator } = request
        const { searchParams } = addressOf(request)
        if (operator === undefined) {
          const failure = searchParams.has('link') ? linkOver : undefined
          return signInPage(signIn, pageOf(request), failure).text
        }
        const said = doneTexts[searchParams.get('done') ?? '']
        return frame(await view(data, request), operator, await notices(data), said).text
      })
      scope.post(path, { config }, async (_request, reply) => {
        return await reply.redirect(await submit(signIn, reply), 303)
      })
    }
    addProviders(scope, signIn)
    // A HEAD, of a program that looks at links, must not use one up.
    const once = { config, exposeHeadRoute: false }
    scope.get<{ Params: { token: string } }>('/ops/link/:token', once, async (request, reply) => {
      const isGood = await signIn.byLink(reply, request.params.token)
      return await reply.redirect(isGood ? '/ops/' : '/ops/?link=over', 303)
    })
  })
}

async function notices({ desk, state, replicas }: PageData) {
  const { total } = await listLockouts(desk).catch(() => ({ total: 0 }))
  return attention(state(), (await replicas()).replicas, total)
}

/** @returns where to go on @throws GatewayError */
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
    page.searchParams.set('done', outcome === undefined ? act : `${act} ${outcome}`)
  }
  return page.pathname + page.search
}

/** The page that was asked for, without what the last act said. */
function pageOf(request: FastifyRequest): string {
  const page = addressOf(request)
  for (const name of ['done', 'link']) page.searchParams.delete(name)
  return toPage(page.pathname + page.search)
}

/** The body of an act: what its button says, and the fields beside it. */
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
    ops.get(`/ops/${file}`, { config: { isOpen: true } }, async (_request, reply) => {
      return await reply.type(type).header('cache-control', 'max-age=60').send(body)
    })
  }
}

/** By three addresses, as at the console. */
function addProviders(scope: FastifyInstance, { providers }: OperatorSignIn): void {
  scope.register(cookie)
  // A HEAD, of a program that looks at links, must not use a sign-in up.
  const options = { config: { isOpen: true }, exposeHeadRoute: false }
  for (const { path, begin, finish } of providers) {
    scope.get(path, options, async (request, reply) => {
      const { returnTo } = request.query as Record<string, unknown>
      return reply.redirect(await begin(reply, toPage(returnTo)), 302)
    })
    scope.get(`${path}/callback`, options, (request, reply) =>
      sendHop(reply, `${path}/finish?${queryOf(request)}`)
    )
    scope.get(`${path}/finish`, options, async (_request, reply) =>
      reply.redirect((await finish(reply)) ?? '/ops/', 303)
    )
  }
}
