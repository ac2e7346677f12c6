/**
 * A console as data: what it calls and when, where it keeps its token, what it takes for success, what
 * it shows. `driver.ts` does the rest, which is the same for all. The head of its preset names the
 * source and the commit that both were read from.
 *
 * Functions read JSON as the console's code does: where a member of nothing is read, the `TypeError`
 * ends what the user began, as in a browser.
 */

/** What the console's code finds in a response, or in its own stores. */
export type Json = any

/** By name: values that the console keeps, what its calls gave last, and `now` in milliseconds. */
export type State = Readonly<Record<string, Json>>

/** Where a value outlives the page. As a text, what is missing becomes "undefined", as in scripts. */
export interface Place {
  readonly in: 'cookie' | 'localStorage'
  readonly key: string
  /** The member of an entry with several values. */
  readonly member?: string
  readonly as: 'text' | 'JSON'
  /** Of a cookie, in milliseconds since 1970. Default: the end of the browser's session. */
  readonly expires?: (value: Json, now: number) => number
}

/** An error of the console's code. */
export class Fault extends Error {}
/** One that the console shows as a message. */
export class ShownFault extends Fault {}

interface Reading {
  /** Of a body under status 2xx. Default: `code` is 0. */
  readonly isOk?: (body: Json) => boolean
  /** What the console's own function hands on of such a body. Default: `data`. */
  readonly gives?: (body: Json) => Json
  /** What is shown of another body under status 2xx. */
  readonly message?: (body: Json) => unknown
  /** What is shown under another status. Default: the message of axios. */
  readonly statusMessage?: (status: number, body: Json) => unknown
}

export interface Call extends Reading {
  /** `METHOD /path`; a path ends with `{name}` where a value of the state stands in it. */
  readonly at: string
  /** Of a GET. Default: the input. */
  readonly query?: (input: Json, state: State) => object
  /** Of a POST. Default: the input. */
  readonly body?: (input: Json, state: State) => object
  /** Shows nothing. */
  readonly isQuiet?: true
}

/** By a body under status 2xx, or by another status. */
interface Mark {
  readonly on?: (body: Json) => boolean
  readonly status?: number
}

export interface ConsoleSpec extends Reading {
  readonly name: string
  readonly places: Readonly<Record<string, Place>>
  /**
   * What tells at the start that there may be a session; nothing: the console asks for its user.
   * Default: `token`.
   */
  readonly knownBy?: readonly string[]
  /** Fields without a value are not sent. Default: the token after `Bearer`. */
  readonly headers?: (state: State, path: string, sent: object) => Readonly<Record<string, unknown>>
  /** The time stands in the query of each GET. */
  readonly hasTimes?: true
  /** How often a request is sent that gets another status than 2xx. */
  readonly attempts?: number
  /** What is shown beside a success. */
  readonly okMessage?: (body: Json) => unknown

  readonly calls: Readonly<Record<'signIn' | 'list' | 'save', string | Call>> &
    Readonly<Record<string, string | Call>>
  /** Before the form is sent, which is `form` in the state. */
  readonly beforeSignIn?: (form: Json) => readonly string[]
  /** Of what the sign-in gave, and the refresh. Default: `token`. */
  readonly keeps?: (given: Json, state: State) => Readonly<Record<string, Json>>
  /** The calls before the first page. Default: `user`. */
  readonly onStart?: readonly string[]
  /** The same after the form. Default: `onStart`. */
  readonly afterSignIn?: readonly string[]
  /** Calls beside the first page, whose failure is no failure of the page. */
  readonly beside?: readonly string[]
  /** What the first page shows of the user. */
  readonly user: (state: State) => { readonly name: unknown; readonly roles: unknown }
  /** Where one of `onStart` fails. Default: a broken page. */
  readonly ifNotEntered?: 'leaves' | 'signs out' | 'shows the kept user'
  /** Calls before every page. */
  readonly guard?: readonly string[]
  readonly menuCalls?: readonly string[]
  readonly menu?: (state: State) => { readonly entries: Json; readonly permissions?: Json }
  /** The names in the query of the list, beside `title`. */
  readonly paging: { readonly page: string; readonly size: string }
  /**
   * Rows and total; page and size too, where the table takes them from the answer. Default: `list`
   * and `total`.
   */
  readonly table?: (given: Json) => readonly unknown[]
  /** What a form finds in a refusal, by field. Left out: its code gets nothing but a text. */
  readonly fieldErrors?: (body: Json) => unknown

  /** Of a response after which the call `refresh` is sent, and the request again. */
  readonly renews?: Mark & { readonly when?: (state: State) => boolean }
  readonly ends?: Mark & {
    readonly by: 'leaving' | 'signing out'
    readonly isOffOnStart?: true
  }
  /** Whatever the sign-out is answered. */
  readonly leavesAnyway?: true
  /**
   * What the line of the preset's page for OpenID Connect finds in the console's code. Default:
   * `getToken` and `setToken`.
   */
  readonly ownCode?: (own: OwnCode) => object
  /** What a message begins with where the console shows words of its own, not the server's. */
  readonly ownWords?: { readonly wrongPassword?: string; readonly refused?: string }
  /** Where a refused request does not lead to the sign-in page. */
  readonly noticesEndBy?: 'reload' | 'clock'
}

interface OwnCode {
  readonly state: () => State
  readonly keep: (values: Readonly<Record<string, Json>>) => void
  readonly call: (name: string) => Promise<Json>
}

export interface Credentials {
  readonly username: string
  readonly password: string
  /** What the user reads in the picture, where the console shows one. */
  readonly captcha?: string
}

export const callOf = (call: string | Call): Call =>
  typeof call === 'string' ? { at: call } : call

/** Without its method. */
export const pathOf = (call: string | Call): string => callOf(call).at.replace(/^\S+ /, '')

/** Where a console says nothing else. */
export const defaults = {
  knownBy: ['token'],
  headers: ({ token }: State) => ({ Authorization: token && `Bearer ${token}` }),
  isOk: (body: Json) => body.code === 0,
  gives: (body: Json): Json => body.data,
  statusMessage: (status: number) => `Request failed with status code ${status}`,
  keeps: ({ token }: Json) => ({ token }),
  onStart: ['user'],
  table: ({ list, total }: Json) => [list, total],
  ownCode: ({ state, keep }: OwnCode) => ({
    getToken: (): Json => state()['token'],
    setToken: (token: string) => keep({ token })
  })
} satisfies Partial<ConsoleSpec>

/** The titles of a menu that are not hidden. */
export const titlesOf = (menu: Json): Json =>
  menu.filter(({ hidden }: Json) => !hidden).map(({ meta }: Json) => meta.title)
