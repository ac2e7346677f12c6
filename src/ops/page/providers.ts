/** Sign-in of operators at OpenID providers, by three addresses as at the console. */
import cookie from '@fastify/cookie'
import type { FastifyInstance } from 'fastify'
import { sendHop } from '../../app/hooks/pages.ts'
import { queryOf } from '../../app/sign-in/flows.ts'
import type { OperatorSignIn } from '../sign-in.ts'
import { toPage } from './views.ts'

export function addProviders(scope: FastifyInstance, { providers }: OperatorSignIn): void {
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
