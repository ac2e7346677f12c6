/** Puts the answers and presets together: what `init` is to look at. */
import { presetsOfKind } from '../../config/schema/presets.ts'
import { headerName } from '../../config/schema/primitives.ts'
import { parseKeepingDigits } from '../../json/digits.ts'
import { isRecord } from '../../json/values.ts'
import { UsageError } from '../command.ts'
import { headersOf } from '../header-option.ts'
import { readPassword } from '../prompt.ts'
import type { Answers } from './answers.ts'
import { familyOfFiles } from './family.ts'
import type { ConsoleChoice } from './model.ts'
import type { PresetSource } from './preset-source.ts'
import { routeName, type WantedRoute } from './routes.ts'
import type { Account, SignInCall } from './sign-in.ts'

interface Context {
  readonly answers: Answers
  readonly preset?: PresetSource | undefined
}

/** The console, with the preset of its family where its files show it. */
export function withFamily(choice: ConsoleChoice, report: (line: string) => void): ConsoleChoice {
  if (choice.preset !== undefined) return choice
  const family = choice.root === undefined ? undefined : familyOfFiles(choice.root)
  if (family === undefined) return choice
  if (!(presetsOfKind('console') as readonly string[]).includes(family)) return choice
  report(`The console calls what those of the family ${family} call: its preset is used.`)
  return { ...choice, preset: family }
}

export async function askAccount(
  context: Context
): Promise<{ readonly call: SignInCall; readonly credentials: Account }> {
  const { answers } = context
  const call = await askCall(context)
  const username = await answers.ask('user', 'An account of the back-end: user name')
  const password = await readPassword('Its password: ', answers.io, answers.text('password-env'))
  return { call, credentials: { username, password } }
}

async function askCall({ answers, preset }: Context): Promise<SignInCall> {
  const hint = preset?.call
  const path = await answers.ask(
    'login-path',
    'Path of its sign-in (POST), such as /auth/login',
    hint?.path
  )
  const names = hint === undefined ? 'username,password' : `${hint.username},${hint.password}`
  const question = 'Members of its body: user name and password'
  const fields = await answers.ask('login-fields', question, names)
  const [username = '', password = ''] = fields.split(',').map(field => field.trim())
  if (!path.startsWith('/')) throw new UsageError(`--login-path begins with "/": "${path}".`)
  if (username === '' || password === '') {
    throw new UsageError('--login-fields takes two names, such as username,password.')
  }
  const format = answers.text('login-format') ?? hint?.format ?? 'json'
  if (format !== 'json' && format !== 'form') {
    throw new UsageError('--login-format is json or form.')
  }
  const extra = { ...preset?.call.extra, ...extraOf(answers.text('login-extra')) }
  return { path, format, username, password, extra }
}

/** The GET calls that the console shall have. */
export async function askRoutes(answers: Answers): Promise<WantedRoute[]> {
  const named = [...answers.list('route')]
  if (named.length === 0 && answers.isInteractive) {
    const question = 'GET paths of the back-end that the console needs, separated by blanks'
    const line = await answers.ask('route', question, '')
    named.push(...line.split(/\s+/).filter(path => path !== ''))
  }
  const names = new Set<string>()
  const publicPaths = new Set<string>()
  return named.map(namedRoute).flatMap(route => {
    if (publicPaths.has(route.publicPath)) return []
    publicPaths.add(route.publicPath)
    const name = routeName(route.path, names)
    names.add(name)
    return [{ ...route, name }]
  })
}

type Unnamed = Omit<WantedRoute, 'name'>

function namedRoute(text: string): Unnamed {
  // As copied from a browser: the query is no part of a route.
  const [bare = ''] = text.split('?', 1)
  const [first = '', second] = bare.split('=', 2)
  const path = second ?? first
  const publicPath = second === undefined ? underApi(path) : first
  if (!path.startsWith('/') || !publicPath.startsWith('/')) {
    throw new UsageError(`--route takes a path such as /orders: "${text}".`)
  }
  return { publicPath: withoutEndSlash(publicPath), path }
}

/** A public path has no slash at its end; a path at the back-end may have one. */
function withoutEndSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
}

function underApi(path: string): string {
  return /^\/api(\/|$)/.test(path) ? path : `/api${path}`
}

/** Those that the config sends to the back-end with each request. @throws UsageError */
export function upstreamHeaders(answers: Answers): Readonly<Record<string, string>> {
  const headers = headersOf(answers.list('header'))
  const other = Object.keys(headers).find(name => !headerName.test(name))
  if (other === undefined) return headers
  throw new UsageError(
    `--header: names of headers in the config have letters, digits and dashes, not "${other}".`
  )
}

function extraOf(written: string | undefined): Readonly<Record<string, unknown>> {
  if (written === undefined) return {}
  try {
    const value = parseKeepingDigits(written)
    if (isRecord(value)) return value
  } catch {}
  throw new UsageError('--login-extra takes a JSON object, such as {"client":"web"}.')
}
