import type { FastifyReply, FastifyRequest } from 'fastify'
import type { RouteConfig } from '../../config/schema/routes.ts'
import type { ErrorCode } from '../../errors/errors.ts'
import type { Trail } from '../../observability/trail.ts'
import type { EndReason, Live } from '../../session/types.ts'
import type { Meter } from './metrics.ts'

export type Access = RouteConfig['access']

/** A live stream (WebSocket, event stream, download) that ends with its session or access. */
export interface BoundStream {
  /** The session that opened it; none on public routes, where no session ends it. */
  readonly live: Live | undefined
  /** The route's name: what later config says of that route holds for the stream too. */
  readonly route: string
  readonly access: Access
  /** Whether it keeps its session from going idle: only where its route says so itself. */
  readonly touch: boolean
  /** Ends by itself, as a download does: a drain leaves it the time that any request has. */
  readonly isFinite?: boolean
  /** Called once at most, with the reason for which a request would now be refused. */
  readonly end: (reason: ErrorCode) => void
}

export type BindStream = (stream: BoundStream) => () => void

export type RequestHook = (
  request: FastifyRequest,
  reply: FastifyReply,
  done: (error?: Error) => void
) => void

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The name in logs and limits; an alias has that of what it stands for. */
    route?: string
    upstream?: string
    meter?: Meter
    access?: Access
    /** The only credential source whose sessions the upstream takes. */
    credentialFrom?: string
    maxBody?: number
    /** Whether `%2F` may stand in its path. */
    passEncodedSlashes?: boolean
    takesUpgrades?: boolean
    keys?: boolean
    /** Whether a call keeps the session from going idle; true without it. */
    touch?: boolean
    /** Errors are pages too, with a link to this address, which begins another sign-in. */
    page?: string
    /** Whether it signs in by GET. */
    signsIn?: boolean
    errorStatus?: 'own' | 'ok'
  }
  interface FastifyRequest {
    /** The record of the request; set by its first hook. */
    trail: Trail
    /** The config of its route; set by its first hook, since `routeOptions` is made at each use. */
    routeConfig: FastifyRequest['routeOptions']['config']
    address: string | undefined
    /** Called when its response is closed: check first that `close` has not fired already. */
    onResponseClose: Array<() => void>
    /** The live session, on routes that neither open nor close one. */
    live: Live | undefined
    /** The session of the cookie, where it is over; the signature proves that it existed. */
    ended: { readonly key: string; readonly reason: EndReason } | undefined
    /** Whether it carries a key for scripts, of whatever worth. */
    hasKey: true | undefined
    /** Whether a header of its response holds bytes above ASCII, such as a file's name. */
    hasByteHeaders: boolean | undefined
    /** The value of the cookie of a session that this request opened. */
    openedId: string | undefined
    /** The body as the client sent it, where that is not what the upstream gets. */
    clientBody: Buffer | undefined
  }
}

export const unknownRoute = 'unknown'
