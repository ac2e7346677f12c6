/** A user at a console: each step, and what was not as it should be. */
import type { Driver, OpenConsole, Page, Screen, ShownList } from './driver.ts'

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
  /** After the form: somebody else of that name signs in at the page of a provider. */
  readonly visitProvider?: () => Promise<unknown>
  readonly endSession: () => Promise<unknown>
  /** The page's clock goes on by so much. */
  readonly passTime: (ms: number) => void
}

const day = 86_400_000

export interface Problem {
  readonly step: Step
  readonly text: string
}

/** The steps of the matrix, in their order. */
export const steps = [
  'start',
  'wrong password',
  'sign-in',
  'menu',
  'page 2',
  'last page',
  'other size',
  'search',
  'nothing found',
  'save',
  'refusal',
  'field errors',
  'reload',
  'refresh',
  'end',
  'sign-in again',
  'sign-out'
] as const

export type Step = (typeof steps)[number]

interface Seat {
  readonly driver: Driver
  readonly page: Page
  readonly expected: Expected
  console: OpenConsole
}

type Play = (seat: Seat) => Promise<string | undefined>

/** A text such as `at sign-in, "…"` where a screen is not the expected one. */
function other<Content>(
  screen: Screen<Content>,
  isExpected: (content: Content | undefined) => boolean,
  at: Screen<Content>['at'] = 'inside'
): string | undefined {
  if (screen.at === at && isExpected(screen.content)) return undefined
  const { messages, content, fault } = screen
  return [`at ${screen.at}`, ...messages, fault, JSON.stringify(content)].filter(Boolean).join(', ')
}

/** Whether a message is one of the texts, or begins with words of the console. */
function shows(
  { messages }: Screen<unknown>,
  ownWords: string | undefined,
  texts: readonly string[]
): boolean {
  return messages.some(message =>
    ownWords === undefined ? texts.includes(message) : message.startsWith(ownWords)
  )
}

const isNothing = (content: unknown) => content === undefined

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

const plays: Readonly<Record<Step, Play>> = {
  'start': async ({ console }) => other(await console.start(), isNothing, 'sign-in'),
  'wrong password': async ({ console, driver, expected: { username, wrongPassword } }) => {
    const screen = await console.signIn({ username, password: 'not-the-Password1' })
    const isShown = shows(screen, driver.ownWords?.wrongPassword, wrongPassword)
    return screen.at === 'sign-in' && isShown
      ? undefined
      : `at ${screen.at}, shows ${JSON.stringify(screen.messages)}`
  },
  'sign-in': async seat => other(await signIn(seat), isUser(seat.expected)),
  'menu': async ({ console }) => other(await console.menu(), content => content !== undefined),
  'page 2': async ({ console }) => other(await console.list(2, 10), holds(11, 20)),
  'last page': async ({ console }) => other(await console.list(3, 10), holds(21, 25)),
  'other size': async ({ console }) => other(await console.list(2, 20), holds(21, 25)),
  'search': async ({ console }) => other(await console.list(1, 10, 'Notice 7'), holds(7, 7, 1)),
  'nothing found': async ({ console }) =>
    other(await console.list(1, 10, 'Nowhere'), holds(1, 0, 0)),
  'save': async ({ console }) =>
    other(await console.save({ title: 'New' }), content => content?.saved === true),
  'refusal': async ({ console, driver, expected: { refusal } }) => {
    const screen = await console.save({ title: '' })
    const isShown = shows(screen, driver.ownWords?.refused, refusal)
    return screen.content?.saved === false && isShown ? undefined : JSON.stringify(screen)
  },
  'field errors': async ({ console, expected: { field, refusal } }) => {
    const { content } = await console.save({ title: '' })
    const errors = content?.fieldErrors
    if (field === undefined || errors === undefined) return undefined
    const shown = errors[field]
    return shown !== undefined && refusal.includes(shown) ? undefined : JSON.stringify(errors)
  },
  'reload': async seat => other(await reload(seat), isUser(seat.expected)),
  'refresh': async ({ console }) =>
    console.refresh && other(await console.refresh(), goesOn => goesOn === true),
  'end': async seat => {
    const { driver, expected } = seat
    await expected.endSession()
    if (driver.noticesEndBy === 'clock') expected.passTime(day)
    const screen = await seat.console.list(1, 10)
    if (driver.noticesEndBy === 'clock') expected.passTime(-day)
    if (driver.noticesEndBy !== 'reload') return other(screen, isNothing, 'sign-in')
    // The user sees the message, and the sign-in page when the page is loaded again.
    if (screen.content !== undefined || screen.messages.length === 0) return JSON.stringify(screen)
    return other(await reload(seat), isNothing, 'sign-in')
  },
  'sign-in again': async seat => other(await signIn(seat), isUser(seat.expected)),
  'sign-out': async seat => {
    const problem = other(await seat.console.signOut(), isNothing, 'sign-in')
    return problem ?? other(await seat.driver.open(seat.page).start(), isNothing, 'sign-in')
  }
}

async function signIn(seat: Seat) {
  const { username, password, visitProvider } = seat.expected
  const screen = await seat.console.signIn({ username, password })
  if (visitProvider === undefined) return screen
  await visitProvider()
  return await reload(seat)
}

function reload(seat: Seat) {
  seat.console = seat.driver.open(seat.page)
  return seat.console.start()
}

function isUser({ name }: Expected) {
  return (content: { name: string } | undefined) => content?.name === name
}

/** Plays all steps, or up to the first problem. */
export async function useConsole(
  driver: Driver,
  page: Page,
  expected: Expected,
  until: 'end' | 'first problem'
): Promise<Problem[]> {
  const seat: Seat = { driver, page, expected, console: driver.open(page) }
  const problems: Problem[] = []
  for (const step of steps) {
    const text = await plays[step](seat).catch((error: unknown) => String(error))
    if (text === undefined) continue
    problems.push({ step, text })
    if (until === 'first problem') return problems
  }
  return problems
}
