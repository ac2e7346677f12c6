/** A user at a console: each step, and what was not as it should be. */
import type { ConsoleSpec } from './console.ts'
import { OpenConsole, type Screen, type ShownList } from './driver.ts'
import type { NodePage } from './page.ts'

export interface Expected {
  readonly username: string
  readonly password: string
  /** The display name. */
  readonly name: string
  /** Texts of which one is shown for a wrong password. */
  readonly wrongPassword: readonly string[]
  /** Texts of which one is shown for an empty title. */
  readonly refusal: readonly string[]
  /** The field that the refusal names, if it names one. */
  readonly field?: string
  /** In place of the form: the page of a provider, and what the operator has put into the console. */
  readonly visitProvider?: () => Promise<unknown>
  readonly endSession: () => unknown
  /** Left out where the gateway gets another token for the user. */
  readonly endAtBackend?: () => unknown
  /** The page's clock goes on by so much. */
  readonly passTime: (ms: number) => void
}

export interface Seat {
  readonly spec: ConsoleSpec
  readonly page: NodePage
  readonly expected: Expected
}

/** Nothing, where a screen is as expected. */
type Problem = string | undefined

const day = 86_400_000

function other<Content>(
  screen: Screen<Content>,
  isExpected: (content: Content | undefined) => boolean,
  at: Screen<Content>['at'] = 'inside'
): Problem {
  return screen.at === at && isExpected(screen.content) ? undefined : JSON.stringify(screen)
}

const isNothing = (content: unknown) => content === undefined
const isThere = (content: unknown) => content !== undefined
const isOut = (screen: Screen<unknown>) => other(screen, isNothing, 'sign-in')

/** Of the back-end's notices these, and how many there are. */
function holds(first: number, last: number, all = 25) {
  const numbers = Array.from({ length: last - first + 1 }, (_, index) => first + index)
  return ({ rows, total }: ShownList = { rows: [], total: 0 }): boolean =>
    total === all &&
    rows.length === numbers.length &&
    numbers.every((number, index) => {
      const { id, title } = rows[index] ?? {}
      return String(id) === String(number) && title === `Notice ${number}`
    })
}

class User {
  readonly #seat: Seat
  #console: OpenConsole

  constructor(seat: Seat) {
    this.#seat = seat
    this.#console = new OpenConsole(seat.spec, seat.page)
  }

  /** The steps in their order. */
  get steps(): ReadonlyArray<readonly [name: string, act: () => Promise<Problem>]> {
    const console = () => this.#console
    const listOf = (page: number, size: number, title?: string) =>
      this.#console.list(page, size, title)
    return [
      ['start', async () => isOut(await console().start())],
      ['wrong password', () => this.#isRefused()],
      ['sign-in', () => this.#signsIn()],
      ['menu', async () => other(await console().menu(), isThere)],
      ['page 2', async () => other(await listOf(2, 10), holds(11, 20))],
      ['last page', async () => other(await listOf(3, 10), holds(21, 25))],
      ['other size', async () => other(await listOf(2, 20), holds(21, 25))],
      ['search', async () => other(await listOf(1, 10, 'Notice 7'), holds(7, 7, 1))],
      ['nothing found', async () => other(await listOf(1, 10, 'Nowhere'), holds(1, 0, 0))],
      ['save', async () => other(await console().save({ title: 'New' }), form => !!form?.saved)],
      ['refusal', () => this.#isNotSaved()],
      ['reload', async () => other(await this.#reload(), this.#isUser)],
      ['refresh', () => this.#refreshes()],
      ['end', () => this.#isEnded()],
      ['sign-in again', () => this.#signsIn()],
      ['end at the back-end', () => this.#isEndedByBackend()],
      ['sign-out', () => this.#signsOut()]
    ]
  }

  readonly #isUser = (content: { name: string } | undefined) =>
    content?.name === this.#seat.expected.name

  #reload() {
    this.#console = new OpenConsole(this.#seat.spec, this.#seat.page)
    return this.#console.start()
  }

  /** Whether a message is one of the texts, or begins with words of the console. */
  #shows({ messages }: Screen<unknown>, ownWords: string | undefined, texts: readonly string[]) {
    return messages.some(message =>
      ownWords === undefined ? texts.includes(message) : message.startsWith(ownWords)
    )
  }

  async #isRefused(): Promise<Problem> {
    const { spec, expected } = this.#seat
    const { username, wrongPassword } = expected
    const screen = await this.#console.signIn({ username, password: 'not-the-Password1' })
    const isShown = this.#shows(screen, spec.ownWords?.wrongPassword, wrongPassword)
    return screen.at === 'sign-in' && isShown ? undefined : JSON.stringify(screen)
  }

  async #signsIn(): Promise<Problem> {
    const { visitProvider } = this.#seat.expected
    if (visitProvider === undefined) {
      return other(await this.#console.signIn(this.#seat.expected), this.#isUser)
    }
    await visitProvider()
    return other(await this.#reload(), this.#isUser)
  }

  async #isNotSaved(): Promise<Problem> {
    const { spec, expected } = this.#seat
    const { field, refusal } = expected
    const screen = await this.#console.save({ title: '' })
    const isShown = this.#shows(screen, spec.ownWords?.refused, refusal)
    const { saved, fieldErrors } = screen.content ?? {}
    const isField =
      field === undefined || fieldErrors === undefined || refusal.includes(fieldErrors[field] ?? '')
    return saved === false && isShown && isField ? undefined : JSON.stringify(screen)
  }

  async #refreshes(): Promise<Problem> {
    if (this.#seat.spec.calls['refresh'] === undefined) return undefined
    return other(await this.#console.refresh(), goesOn => goesOn === true)
  }

  async #isEnded(end = this.#seat.expected.endSession, mayStay = false): Promise<Problem> {
    const { spec, expected, page } = this.#seat
    await end()
    const before = page.sent.length
    const passedMs = spec.noticesEndBy === 'clock' ? day : 0
    expected.passTime(passedMs)
    let screen = await this.#console.list(2, 10)
    const sent = page.sent.slice(before)
    const isTold = screen.content === undefined && screen.messages.length > 0
    const isFailed = screen.content === undefined && screen.at === 'inside'
    if (isFailed && mayStay) screen = await this.#console.list(2, 10)
    const isLeft = spec.noticesEndBy === 'reload' && isTold ? undefined : isOut(screen)
    const problem = isLeft ?? isOut(await this.#reload())
    expected.passTime(-passedMs)
    return sent.length > 3 ? sent.join(', ') : problem
  }

  /** Some consoles show the failure first, and leave with the next step. */
  async #isEndedByBackend(): Promise<Problem> {
    const { endAtBackend } = this.#seat.expected
    if (endAtBackend === undefined) return undefined
    return (await this.#isEnded(endAtBackend, true)) ?? this.#signsIn()
  }

  async #signsOut(): Promise<Problem> {
    return isOut(await this.#console.signOut()) ?? isOut(await this.#reload())
  }
}

/** Plays all steps, or up to the first problem. */
export async function useConsole(
  seat: Seat,
  until: 'end' | 'first problem'
): Promise<readonly { readonly step: string; readonly text: string }[]> {
  const problems = []
  for (const [step, act] of new User(seat).steps) {
    const text = await act().catch(String)
    if (text !== undefined) problems.push({ step, text })
    if (text !== undefined && until === 'first problem') break
  }
  return problems
}
