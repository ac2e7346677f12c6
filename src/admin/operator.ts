/** The operator of a request to the operators' listener. */

export interface Operator {
  /** The user name; `operator` for whoever has the operators' secret. */
  readonly name: string
  readonly via: 'secret' | 'session'
  /** The credential source, of a session. */
  readonly source?: string
  /** The end of the session, in milliseconds since the epoch. */
  readonly until?: number
}

/** The operator of every request with the operators' secret, which has no user name. */
export const secretOperator: Operator = { name: 'operator', via: 'secret' }

/** `unavailable`: the store of sessions does not answer. */
export type FoundOperator = Operator | 'none' | 'unavailable'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on all paths but the open ones (`/healthz`, `/readyz`, and by config `/metrics`). */
    operator: Operator | undefined
    /** The secret id of the session that the request's cookie names, live or not. */
    operatorSession: string | undefined
  }
  interface FastifyContextConfig {
    /** Whether the operators' listener answers it without an operator. */
    isOpen?: boolean
    /** Whether it is a page, whose forms are posted as browsers do. */
    isPage?: boolean
  }
}
