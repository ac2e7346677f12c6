/** What the gateway puts on Fastify's requests and routes. */
import type { Envelope } from '../../shaping/envelope.ts'
import type { ErrorCode } from '../../errors.ts'
import type { PluginSession } from './session.ts'
import type { Meter } from './metrics.ts'
import type { StandardHeaders } from './standard-headers.ts'
import type { Exchange } from '../../proxy/response.ts'
import type { EndReason } from '../../session/record.ts'
import type { Live } from '../../session/evaluate.ts'
import type { NewSession } from '../../session/session.ts'
import type { RouteConfig } from '../../config/schema/routes.ts'

export type Access = RouteConfig['access']

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The name in logs and limits; an alias has that of what it stands for. */
    route?: string
    /** The name of the upstream that answers, where one does. */
    upstream?: string
    /** Where its requests are counted; set by the first of them. */
    meter?: Meter
    access?: Access
    /** The credential source whose sessions the upstream takes, where it takes no other's. */
    credentialFrom?: string
    maxBody?: number
    /** Whether a call keeps the session from going idle; true without it. */
    touch?: boolean
    /** How long an answer may make no progress; `server.idleTimeout` without it. */
    stallMs?: number
    /** Where the route speaks another dialect than the rest. */
    envelope?: Envelope
    /** Where the route's errors have another status than the rest: `ok` is 200. */
    errorStatus?: 'own' | 'ok'
  }
  interface FastifyRequest {
    /** The client's, once it was asked for. */
    address: string | undefined
    /** State of a proxied request, shared with its upstream. */
    exchange: Exchange | undefined
    /**
     * Called when its answer is closed, whole or not; who adds to it looks first whether that is
     * still to come.
     */
    onResponseClose: Array<() => void>
    /** The live session, on routes that neither open nor close one. */
    live: Live | undefined
    /** Why the session that the cookie names is over. */
    ended: EndReason | undefined
    /** The public id of that session: its cookie is signed, so nobody made it up. */
    endedSession: string | undefined
    /** Of the error that the gateway answers with; an upstream's own error that passes has none. */
    errorCode: ErrorCode | undefined
    /** The user name of a sign-in or sign-out, where no session tells it. */
    actor: string | undefined
  }
  interface FastifyReply {
    /** What every answer says, unless it says otherwise. */
    readonly standardHeaders: StandardHeaders
    /** `server.idleTimeout`. */
    readonly stallMs: number
  }
  interface Session {
    plugin?: PluginSession
    ended?: EndReason
    /** Set where a newer version of the gateway wrote the session. */
    unreadable?: 'version'
    opening?: NewSession
  }
}

/** The name under which whatever no route names is logged and limited. */
export const unknownRoute = 'unknown'
