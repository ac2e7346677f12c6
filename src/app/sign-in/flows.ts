/** Sign-ins that are under way, each in a sealed cookie of its own, so that tabs do not disturb each other. */
import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Flow } from '../../login/oidc/source.ts'
import { createSeal } from '../../session/seal.ts'
import type { Gateway } from '../gateway.ts'
import { signedOutCookie } from '../hooks/session-cookie.ts'

const flowMs = 600_000
/** Of a browser. The oldest gives way. */
const maxFlows = 8
/** Of the cookie's value. */
const maxSealed = 1200

export type Flows = ReturnType<typeof createFlows>

export function createFlows(gateway: Gateway) {
  const { secure } = gateway.cookie.options
  const { store } = gateway.sessions
  // Lax: it comes along from another site.
  const options = { path: '/', secure, httpOnly: true, sameSite: 'lax' } as const
  const prefix = `${secure ? '__Host-' : ''}console_flow_`
  const seal = createSeal(gateway.secrets, 'oidc-flow')
  const idOf = (state: string) => hash('sha256', state, 'hex').slice(0, 16)

  return {
    keep(request: FastifyRequest, reply: FastifyReply, flow: Flow): void {
      // Browsers send the oldest first (RFC 6265 §5.4).
      const others = Object.keys(request.cookies).filter(name => name.startsWith(prefix))
      for (const name of others.slice(0, -(maxFlows - 1))) reply.clearCookie(name, options)
      const name = prefix + idOf(flow.state)
      const sealed = seal.close(name, JSON.stringify({ ...flow, until: Date.now() + flowMs }))
      reply.setCookie(name, sealed, { ...options, maxAge: flowMs / 1000 })
    },
    /**
     * The flow of this source that the state of a request belongs to.
     * @returns undefined for another browser's, and an old one; `isSpent` where it was taken before
     * @throws StoreUnavailable
     */
    async take(request: FastifyRequest, source: string) {
      const { state } = request.query as Record<string, unknown>
      if (typeof state !== 'string') return undefined
      const name = prefix + idOf(state)
      const { [name]: sealed = '' } = request.cookies
      const text = sealed.length > maxSealed ? undefined : seal.open(name, sealed)
      if (text === undefined) return undefined
      const flow = JSON.parse(text) as Flow & { readonly until: number }
      if (flow.source !== source || flow.until < Date.now()) return undefined
      const isFirst = await store.lock(`flow:${idOf(state)}`, request.id, flowMs)
      return { flow, isSpent: !isFirst }
    },
    /** Whether the last session ended by a sign-out, or by an operator, and not by its time. */
    wasSignedOut: ({ cookies, ended }: FastifyRequest): boolean =>
      cookies[signedOutCookie] !== undefined || ended?.reason === 'revoked',
    forgetSignOut: (reply: FastifyReply) => reply.clearCookie(signedOutCookie, options)
  }
}
