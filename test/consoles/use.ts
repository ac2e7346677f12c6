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

interface Seat {
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

/** The steps in their order. */
function stepsOf({ spec, page, expected }: Seat): Readonly<Record<string, () => Promise<Problem>>> {
  const { ownWords, noticesEndBy, calls } = spec
  const { username, refusal, field, visitProvider, endSession, endAtBackend } = expected
  let console = new OpenConsole(spec, page)
  const reload = () => {
    console = new OpenConsole(spec, page)
    return console.start()
  }
  const isUser = (content: { name: string } | undefined) => content?.name === expected.name
  /** Whether a message is one of the texts, or begins with words of the console. */
  const shows = (
    { messages }: Screen<unknown>,
    own: string | undefined,
    texts: readonly string[]
  ) => messages.some(each => (own === undefined ? texts.includes(each) : each.startsWith(own)))

  async function signsIn(): Promise<Problem> {
    if (visitProvider === undefined) return other(await console.signIn(expected), isUser)
    await visitProvider()
    return other(await reload(), isUser)
  }

  /** @param mayStay the console may show the failure first, and leave with the next step */
  async function isEnded(end: () => unknown, mayStay = false): Promise<Problem> {
    await end()
    const before = page.sent.length
    const passedMs = noticesEndBy === 'clock' ? day : 0
    expected.passTime(passedMs)
    let screen = await console.list(2, 10)
    const sent = page.sent.slice(before)
    const isFailed = screen.content === undefined && screen.at === 'inside'
    const isTold = isFailed && screen.messages.length > 0
    if (isFailed && mayStay) screen = await console.list(2, 10)
    const isLeft = noticesEndBy === 'reload' && isTold ? undefined : isOut(screen)
    const problem = isLeft ?? isOut(await reload())
    expected.passTime(-passedMs)
    return sent.length > 3 ? sent.join(', ') : problem
  }

  return {
    'start': async () => isOut(await console.start()),
    'wrong password': async () => {
      const screen = await console.signIn({ username, password: 'not-the-Password1' })
      const isShown = shows(screen, ownWords?.wrongPassword, expected.wrongPassword)
      return screen.at === 'sign-in' && isShown ? undefined : JSON.stringify(screen)
    },
    'sign-in': signsIn,
    'menu': async () => other(await console.menu(), isThere),
    'page 2': async () => other(await console.list(2, 10), holds(11, 20)),
    'last page': async () => other(await console.list(3, 10), holds(21, 25)),
    'other size': async () => other(await console.list(2, 20), holds(21, 25)),
    'search': async () => other(await console.list(1, 10, 'Notice 7'), holds(7, 7, 1)),
    'nothing found': async () => other(await console.list(1, 10, 'Nowhere'), holds(1, 0, 0)),
    'save': async () =>
      other(await console.save({ title: 'New' }), content => content?.saved === true),
    'refusal': async () => {
      const screen = await console.save({ title: '' })
      const { saved, fieldErrors } = screen.content ?? {}
      const hasField = field !== undefined && fieldErrors !== undefined
      const isField = !hasField || refusal.includes(fieldErrors[field] ?? '')
      const isRefused = saved === false && shows(screen, ownWords?.refused, refusal) && isField
      return isRefused ? undefined : JSON.stringify(screen)
    },
    'reload': async () => other(await reload(), isUser),
    'refresh': async () =>
      calls['refresh'] && other(await console.refresh(), goesOn => goesOn === true),
    'end': () => isEnded(endSession),
    'sign-in again': signsIn,
    'end at the back-end': async () =>
      endAtBackend && ((await isEnded(endAtBackend, true)) ?? signsIn()),
    'sign-out': async () => isOut(await console.signOut()) ?? isOut(await reload())
  }
}

/** Plays all steps, or up to the first problem. */
export async function useConsole(
  seat: Seat,
  until: 'end' | 'first problem'
): Promise<readonly { readonly step: string; readonly text: string }[]> {
  const problems = []
  for (const [step, act] of Object.entries(stepsOf(seat))) {
    const text = await act().catch(String)
    if (text !== undefined) problems.push({ step, text })
    if (text !== undefined && until === 'first problem') break
  }
  return problems
}
