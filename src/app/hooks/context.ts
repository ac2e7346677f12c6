/** The members that the gateway adds to Fastify's requests, replies and routes. */
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
  /** The route's access, until a later config changes it. */
  readonly access: Access
  /** Whether it keeps its session from going idle: only where its route says so itself. */
  readonly touch: boolean
  /** Ends by itself, as a download does: a drain leaves it the time that any request has. */
  readonly isFinite?: boolean
  readonly stream: {
    /**
     * Ends it, with the reason that a request would now be refused for, or `gateway.stopping`.
     * Called once at most.
     */
    readonly end: (reason: ErrorCode) => void
  }
}

/** @returns what to call when the stream is over by itself */
export type BindStream = (stream: BoundStream) => () => void

/** A hook of `onRequest`. */
export type RequestHook = (
  request: FastifyRequest,
  reply: FastifyReply,
  done: (error?: Error) => void
) => void

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The name in logs and limits; an alias has that of what it stands for. */
    route?: string
    /** The name of the upstream that answers, where one does. */
    upstream?: string
    /** The route's metrics; set by its first request. */
    meter?: Meter
    access?: Access
    /** The only credential source whose sessions the upstream takes. */
    credentialFrom?: string
    maxBody?: number
    /** Whether `%2F` may stand in its path. */
    passEncodedSlashes?: boolean
    /** Whether a request for it may be an upgrade to WebSocket. */
    takesUpgrades?: boolean
    /** Whether keys for scripts may call it. */
    keys?: boolean
    /** Whether a call keeps the session from going idle; true without it. */
    touch?: boolean
    /**
     * Set where browsers open it as a page: errors are pages too, with a link to this address, which
     * begins another sign-in.
     */
    page?: string
    /** Whether it signs in by GET. */
    signsIn?: boolean
    /** The HTTP status of a route's errors: `ok` is 200. */
    errorStatus?: 'own' | 'ok'
  }
  interface FastifyRequest {
    /** The record of the request; set by its first hook. */
    trail: Trail
    /** The config of its route; set by its first hook, since `routeOptions` is made at each use. */
    routeConfig: FastifyRequest['routeOptions']['config']
    /** The client's address, once it was computed. */
    address: string | undefined
    /**
     * Called when its response is closed, complete or not. Check that `close` has not fired before
     * you add to it.
     */
    onResponseClose: Array<() => void>
    /** The live session, on routes that neither open nor close one. */
    live: Live | undefined
    /** The session that the cookie names, where it is over; the signature proves that it existed. */
    ended: { readonly key: string; readonly reason: EndReason } | undefined
    /** Whether it carries a key for scripts, of whatever worth. */
    hasKey: true | undefined
    /** The value of the cookie of a session that this request opened. */
    openedId: string | undefined
    /** The body as the client sent it, where that is not what the upstream gets. */
    clientBody: Buffer | undefined
  }
}

/** The route's name, in logs and limits, of requests that no route takes. */
export const unknownRoute = 'unknown'
