/** The operator of a request to the operators' listener. */

export interface Operator {
  /** The user name; `operator` for whoever has the operators' secret. */
  readonly name: string
  readonly via: 'secret' | 'session'
}

/** The operator of every request with the operators' secret, which has no user name. */
export const secretOperator: Operator = { name: 'operator', via: 'secret' }

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on all paths but the open ones (`/healthz`, `/readyz`, and by config `/metrics`). */
    operator: Operator | undefined
  }
}
