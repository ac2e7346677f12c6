/** What all consoles do, with the data of one. Runs in Node and in a browser. */
import {
  type Call,
  callOf,
  type ConsoleSpec,
  defaults,
  type Credentials,
  Fault,
  type Json,
  ShownFault,
  type State
} from './console.ts'
import { type Page, Places } from './page.ts'

/** What the user sees after a step. */
export interface Screen<Content> {
  /** `inside` is every page that needs a session. */
  readonly at: 'sign-in' | 'inside'
  /** Messages that the console showed during the step, in order. */
  readonly messages: readonly string[]
  /** What the page shows; `undefined` when the console could not show it. */
  readonly content: Content | undefined
  /** The error that ended the step, as developer tools show it; users do not. */
  readonly fault?: string
}

interface ShownUser {
  readonly name: string
  readonly roles: readonly string[]
}

export interface ShownList {
  readonly rows: readonly Readonly<Record<string, unknown>>[]
  readonly total: number
}

/** Messages by the name of a field. */
type Fields = Readonly<Record<string, string>>

/** A refused request. */
class Refusal extends Fault {
  readonly body: Json

  constructor(message: string, body: Json) {
    super(message)
    this.body = body
  }
}

const isFault = (error: unknown): error is Error =>
  error instanceof Fault || error instanceof TypeError
const isSuccess = (status: number) => status >= 200 && status < 300

/** What a page shows of a value. */
const textOf = (value: unknown) =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : ''

function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw new Fault(`${JSON.stringify(value)} is not iterable`)
}
const textsOf = (value: unknown) => listOf(value).map(textOf)

/** One load of the console's page: what it keeps in memory is gone with it. */
export class OpenConsole {
  readonly #spec: ConsoleSpec & Required<Pick<ConsoleSpec, keyof typeof defaults>>
  readonly #page: Page
  readonly #places: Places
  #memory: Record<string, Json> = {}
  #at: Screen<unknown>['at'] = 'sign-in'
  #messages: string[] = []
  #isStarting = false

  constructor(spec: ConsoleSpec, page: Page) {
    this.#spec = { ...defaults, ...spec }
    this.#page = page
    this.#places = new Places(page, spec.places)
  }

  /** The user opens the first page or presses reload. */
  start(): Promise<Screen<ShownUser>> {
    return this.#step(async () => {
      this.#at = this.#isKnown() ? 'inside' : 'sign-in'
      return this.#isKnown() ? this.#enter(this.#spec.onStart) : undefined
    })
  }

  /** The user fills in the sign-in form and sends it. */
  signIn({ username, password, captcha }: Credentials): Promise<Screen<ShownUser>> {
    const { beforeSignIn, keeps, onStart, afterSignIn = onStart } = this.#spec
    const form = { username, password, captcha }
    return this.#step(async () => {
      this.#keep({ form })
      for (const name of beforeSignIn?.(form) ?? []) await this.#call(name)
      const given = await this.#call('signIn', form)
      this.#keep(keeps(given, this.#state()))
      return this.#isKnown() ? this.#enter(afterSignIn) : undefined
    })
  }

  menu(): Promise<Screen<{ entries: string[]; permissions: string[] }>> {
    const { menu, menuCalls = [] } = this.#spec
    return this.#step(async () => {
      if (!(await this.#passes())) return undefined
      for (const name of menuCalls) await this.#call(name)
      const { entries = [], permissions = [] } = menu?.(this.#state()) ?? {}
      return { entries: textsOf(entries), permissions: textsOf(permissions) }
    })
  }

  /** @param title what the user looks for */
  list(page: number, size: number, title?: string): Promise<Screen<ShownList>> {
    const { paging } = this.#spec
    return this.#step(async () => {
      if (!(await this.#passes())) return undefined
      const input = { title, [paging.page]: page, [paging.size]: size }
      const given = await this.#call('list', input)
      const [rows, total, ...place] = this.#spec.table(given)
      if (place.length > 0 && (place[0] !== page || place[1] !== size)) {
        throw new Fault('the list is not of the page that was asked for')
      }
      if (typeof total !== 'number') throw new Fault(`total is ${JSON.stringify(total)}`)
      return { rows: listOf(rows) as ShownList['rows'], total }
    })
  }

  save(values: object): Promise<Screen<{ saved: boolean; fieldErrors?: Fields }>> {
    const { fieldErrors } = this.#spec
    return this.#step(async () => {
      try {
        await this.#call('save', values)
        return { saved: true }
      } catch (error) {
        if (!isFault(error)) throw error
        const found = error instanceof Refusal ? fieldErrors?.(error.body) : undefined
        const shown = Object.entries(found ?? {}).map(([field, texts]) => [
          field,
          [texts].flat().map(textOf).join(' ')
        ])
        const fields = Object.fromEntries(shown) as Fields
        return { saved: false, ...(fieldErrors && { fieldErrors: fields }) }
      }
    })
  }

  /** The console's own renewal of its token, where it has one. */
  refresh(): Promise<Screen<boolean>> {
    return this.#step(async () => {
      await this.#renew()
      return true
    })
  }

  signOut(): Promise<Screen<undefined>> {
    return this.#step(() => this.#signOut())
  }

  /** @see ConsoleSpec.ownCode */
  ownCode(): object {
    const state = () => this.#state()
    const keep = (values: Readonly<Record<string, Json>>) => this.#keep(values)
    const call = (name: string) => this.#call(name)
    return this.#spec.ownCode({ state, keep, call })
  }

  async #step<Content>(act: () => Promise<Content | undefined>): Promise<Screen<Content>> {
    this.#messages = []
    this.#memory['now'] = this.#page.now()
    try {
      const content = await act()
      return { at: this.#at, messages: this.#messages, content }
    } catch (error) {
      if (!isFault(error)) throw error
      if (error instanceof ShownFault) this.#say(error.message)
      const { message: fault } = error
      return { at: this.#at, messages: this.#messages, content: undefined, fault }
    }
  }

  #say(message: unknown): void {
    if (typeof message === 'string' && message !== '') this.#messages.push(message)
  }

  #state(): State {
    return { ...this.#memory, ...this.#places.all() }
  }

  #keep(values: Readonly<Record<string, Json>> = {}): void {
    for (const [name, value] of Object.entries(values)) {
      if (!this.#places.set(name, value)) this.#memory[name] = value
    }
  }

  #isKnown(): boolean {
    const state = this.#state()
    return this.#spec.knownBy.every(name => Boolean(state[name]))
  }

  /** @returns the user, where the first page is shown */
  async #enter(names: readonly string[]): Promise<ShownUser | undefined> {
    const { beside = [], ifNotEntered, user } = this.#spec
    this.#isStarting = true
    try {
      for (const name of names) await this.#call(name)
      user(this.#state())
    } catch (error) {
      const kept = ifNotEntered === 'shows the kept user' && this.#state()['user'] !== undefined
      if (!isFault(error) || ifNotEntered === undefined) throw error
      if (error instanceof ShownFault) this.#say(error.message)
      if (ifNotEntered === 'leaves') return this.#leave()
      if (ifNotEntered === 'signs out') return await this.#signOut()
      if (!kept) throw error
    } finally {
      this.#isStarting = false
    }
    const { name, roles } = user(this.#state())
    const shown = { name: textOf(name), roles: textsOf(roles).filter(role => role !== '') }
    this.#at = 'inside'
    for (const name of beside) await this.#call(name).catch(ignoreFault)
    return shown
  }

  async #passes(): Promise<boolean> {
    const { guard } = this.#spec
    return guard === undefined || (await this.#enter(guard)) !== undefined
  }

  #leave(): undefined {
    this.#places.forget()
    this.#memory = { now: this.#page.now() }
    this.#at = 'sign-in'
  }

  async #signOut(): Promise<undefined> {
    const { calls, leavesAnyway } = this.#spec
    if (calls['signOut'] !== undefined) {
      await this.#call('signOut').catch(error => {
        if (leavesAnyway === undefined || !isFault(error)) throw error
      })
    }
    return this.#leave()
  }

  async #renew(): Promise<void> {
    try {
      const given = await this.#call('refresh')
      this.#keep(this.#spec.keeps(given, this.#state()))
    } catch (error) {
      if (error instanceof Refusal) await this.#end()
      throw error
    }
  }

  async #end(): Promise<void> {
    const { by, isOffOnStart } = this.#spec.ends ?? {}
    if (isOffOnStart && this.#isStarting) return
    if (by === 'signing out') await this.#signOut()
    else this.#leave()
  }

  /** @returns what the console's function for the call hands on, which stays in the state */
  async #call(name: string, input?: object, isSecond = false): Promise<Json> {
    const spec = this.#spec
    const call = callOf(spec.calls[name] ?? '')
    const { isOk, gives, message, statusMessage } = { ...spec, ...call }
    const mayRenew = !isSecond && !['signIn', 'refresh', 'signOut'].includes(name)
    if (mayRenew && spec.renews?.when?.(this.#state())) await this.#renew()
    const { status, body } = await this.#send(call, input)
    if (isSuccess(status) && isOk(body)) {
      this.#say(spec.okMessage?.(body))
      const given = gives(body)
      this.#keep({ [name]: given })
      return given
    }
    const isAt = (mark: ConsoleSpec['ends' | 'renews']) =>
      isSuccess(status) ? mark?.on?.(body) : mark?.status === status
    const { token } = this.#state()
    if (mayRenew && token && isAt(spec.renews)) {
      await this.#renew()
      return this.#call(name, input, true)
    }
    const shown = isSuccess(status) ? message?.(body) : statusMessage(status, body)
    if (call.isQuiet === undefined) this.#say(shown)
    if (!['refresh', 'signOut'].includes(name) && isAt(spec.ends)) await this.#end()
    throw new Refusal(textOf(shown), body)
  }

  async #send(call: Call, input: object | undefined): Promise<{ status: number; body: Json }> {
    const { headers, hasTimes, attempts = 1 } = this.#spec
    const state = this.#state()
    const [method = '', place = ''] = call.at.split(' ')
    const path = place.replace(/\{(\w+)\}$/, (_, name: string) => String(state[name]))
    const isGet = method === 'GET'
    const query = {
      ...(isGet && (call.query?.(input, state) ?? input)),
      ...(isGet && hasTimes && { _t: this.#page.now() })
    }
    const data = isGet ? undefined : (call.body?.(input, state) ?? input)
    const fields = Object.entries({
      'accept': 'application/json, text/plain, */*',
      'content-type': data && 'application/json',
      ...headers(state, path, { ...query, ...data })
    }).flatMap(([name, value]) => (value ? [[name, textOf(value)]] : []))
    const init = {
      method,
      headers: Object.fromEntries(fields) as Record<string, string>,
      ...(data && { body: JSON.stringify(data) })
    }
    for (let attempt = 1; ; attempt++) {
      const response = await this.#page.fetch(path + searchOf(query), init)
      const body = parse(await response.text())
      const { status } = response
      if (isSuccess(status) || attempt === attempts) return { status, body }
    }
  }
}

function ignoreFault(error: unknown): void {
  if (!isFault(error)) throw error
}

function searchOf(query: object): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) search.append(name, String(value))
  }
  return search.size === 0 ? '' : `?${search.toString()}`
}

function parse(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
