/**
 * The driver of a console family: what its request layer, its stores and its router do, written
 * from its source. It is built on nothing but a page, so that the same code runs in Node and in a
 * browser. A driver is as strict as the console is: a response that the real console cannot use
 * fails in the driver too.
 */

/** What a console finds around itself in a browser. */
export interface Page {
  /** Same-origin; `path` begins with `/`. The page sends and keeps cookies as a browser does. */
  readonly fetch: (path: string, init?: PageRequest) => Promise<PageResponse>
  /** The cookies that scripts see: never those with `HttpOnly`. */
  readonly cookies: PageCookies
  readonly localStorage: PageStorage
  /** Milliseconds since 1970. */
  readonly now: () => number
}

export interface PageRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface PageResponse {
  readonly status: number
  readonly headers: { readonly get: (name: string) => string | null }
  readonly text: () => Promise<string>
}

export interface PageCookies {
  readonly get: (name: string) => string | undefined
  /** @param expires milliseconds since 1970; without it, a cookie of the browser's session */
  readonly set: (name: string, value: string, expires?: number) => void
  readonly remove: (name: string) => void
}

export interface PageStorage {
  readonly getItem: (name: string) => string | null
  readonly setItem: (name: string, value: string) => void
  readonly removeItem: (name: string) => void
}

/** What the user sees after a step. */
export interface Screen<Content> {
  /** `inside` is every page that needs a session. */
  readonly at: 'sign-in' | 'inside'
  /** Messages that the console showed during the step, in order. */
  readonly messages: readonly string[]
  /** What the page shows; `undefined` when the console could not show it. */
  readonly content: Content | undefined
  /** The error of the console's code that ended the step, as developer tools show it; users do not. */
  readonly fault?: string
}

export interface Credentials {
  readonly username: string
  readonly password: string
  /** What the user reads in the picture, where the console shows one. */
  readonly captcha?: string
}

/** The names under which the user appears, as the console's header or its stores show them. */
export interface ShownUser {
  readonly name: string
  readonly roles: readonly string[]
}

export interface ShownMenu {
  /** Titles or paths of the first level, in order. */
  readonly entries: readonly string[]
  /** What buttons are shown by; empty where the console knows only roles. */
  readonly permissions: readonly string[]
}

export interface ShownList {
  readonly rows: readonly Readonly<Record<string, unknown>>[]
  readonly total: number
}

export interface ShownForm {
  readonly saved: boolean
  /**
   * Field → message, as a form reads it from what the request layer hands on. Left out where the
   * request layer hands on nothing but a text, so that no form of the console can read it.
   */
  readonly fieldErrors?: Readonly<Record<string, string>>
}

/** One load of the console's page: what it keeps in memory is gone with it. */
export interface OpenConsole {
  /** The user opens the start page or presses reload; content: the user, if the console goes in. */
  readonly start: () => Promise<Screen<ShownUser>>
  /** The user fills in the sign-in form and sends it; content: the user, if the console goes in. */
  readonly signIn: (credentials: Credentials) => Promise<Screen<ShownUser>>
  readonly menu: () => Promise<Screen<ShownMenu>>
  /**
   * @param page counted as the user counts: the first is 1
   * @param title what the user looks for, sent as a form of the console sends a filter
   */
  readonly list: (page: number, size: number, title?: string) => Promise<Screen<ShownList>>
  readonly save: (values: Readonly<Record<string, unknown>>) => Promise<Screen<ShownForm>>
  /**
   * The console's own renewal of its token, called as it calls it. Content: whether the console
   * goes on signed in. Left out where the console has none.
   */
  readonly refresh?: () => Promise<Screen<boolean>>
  readonly signOut: () => Promise<Screen<undefined>>
}

export interface Driver {
  readonly name: string
  /** What a message begins with where the console shows words of its own, not the server's. */
  readonly ownWords?: {
    readonly wrongPassword?: string
    /** For a refused `save`. */
    readonly refused?: string
  }
  /**
   * How the console notices that its session has ended, where a refused request does not lead to the
   * sign-in page: when its page is loaded again, or when the time has passed that the sign-in told.
   */
  readonly noticesEndBy?: 'reload' | 'clock'
  /** The sign-out sends nothing, so that the session goes on without the console. */
  readonly signsOutSilently?: boolean
  /** What the user's own pages call by GET and POST: the paths that routes.yaml maps. */
  readonly calls: {
    readonly list: string
    readonly save: string
  }
  readonly open: (page: Page) => OpenConsole
}
