/**
 * The types of own code: JavaScript modules below the config folder that `routes.yaml` names.
 * They run in the gateway's process; one that loops for ever stops it.
 */

/** Who is signed in. */
export interface User {
  readonly id: string
  readonly username: string
  /** For people. */
  readonly name: string
  readonly roles: readonly string[]
  /** Further data of the sign-in. */
  readonly profile: Readonly<Record<string, unknown>>
}

export interface ShapeContext {
  /** Name of the route. */
  readonly route: string
  /** Undefined where nobody is signed in. */
  readonly user: User | undefined
}

/**
 * Default export of a module that an operation `module` of a shape names.
 * @param value plain JSON, a copy: a number that JavaScript cannot hold is a text of its digits
 * @returns JSON, or a promise of it within five seconds
 */
export type Shape<In = any> = (value: In, context: ShapeContext) => unknown

/** A call to a back-end, before it is sent. */
export interface UpstreamCall {
  readonly method: string
  /** At the back-end, with the query. */
  readonly path: string
  /** In lower case; without the fixed `headers` of the upstream. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  /** Undefined where there is none, or where it is streamed: see docs/shaping.md. */
  readonly body: string | undefined
}

/**
 * Default export of a module that `upstreams.NAME.module` names.
 * @returns headers to add to the call, such as a signature; or a promise of them within five seconds
 */
export type UpstreamHeaders = (
  call: UpstreamCall,
  context: { readonly route: string }
) => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>
