/** A back-end as data, from the source that its preset names. `server.ts` serves it. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Json } from './console.ts'
import type { Grant, Response, Visit } from './server.ts'

/** A page of the list. */
interface Listed {
  /** Under the names of `fields`. */
  readonly rows: readonly object[]
  readonly total: number
  readonly page: number
  readonly size: number
  /** The number of the last page. */
  readonly last: number
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
}

export interface BackendSpec {
  readonly name: string
  /** How a request carries a token, as in the preset. Default: bearer. */
  readonly credential?: string
  /** The token that a request carries. Default: after `Bearer`. */
  readonly tokenIn?: (request: Pick<Visit, 'headers' | 'query'>) => string | undefined
  /** What a user types as the user name. Default: the name itself. */
  readonly loginName?: string
  readonly wrongPassword: string
  readonly wrongCaptcha?: string

  readonly signIn: {
    readonly at: string
    /** Default: the JSON body. */
    readonly fieldsOf?: (visit: Visit) => Json
    /** What is looked at before the password. */
    readonly refuses?: (visit: Visit) => Response | undefined
    readonly granted: (grant: Grant) => Response
    readonly refused: Response
  }
  /** GET, the notices page by page. */
  readonly list: {
    readonly path: string
    /** The names of a notice's members. */
    readonly fields: { readonly id: string; readonly title: string }
    /** The parameters that look for a title, and that page. */
    readonly query: { readonly search: string; readonly page: string; readonly size: string }
    readonly defaultSize?: number
    readonly maxSize?: number
    /** A page beyond the last is the last. */
    readonly staysInside?: true
    readonly answer: (listed: Listed) => Response
  }
  /** POST, saves a notice, and refuses an empty title as it refuses a form. */
  readonly save: {
    readonly path: string
    readonly message: string
    /** The member that is named with it. */
    readonly field?: string
    /** The operations of a shape that make the body of `{ title }`. Default: its other name. */
    readonly operations?: readonly unknown[]
    /** Default: the member of `fields`. */
    readonly titleOf?: (json: Json) => unknown
    readonly saved: (id: number, title: string) => Response
    readonly refused: (title: unknown) => Response
  }
  /** Other calls, by `METHOD /path`; `*` at the end is the last segment. */
  readonly open?: Readonly<Record<string, (visit: Visit) => Response>>
  /** Those that need a valid token. */
  readonly guarded: Readonly<Record<string, (visit: Visit) => Response>>
  readonly unauthorized: (visit: Visit) => Response
  /** What a call refuses before it does anything. */
  readonly refuse?: (visit: Visit) => Response | undefined
  /** Of the bodies that it reads; others are 415. Default: JSON. */
  readonly bodyType?: string
}
