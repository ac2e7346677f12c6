/** The questions of `init`, and what is wrong with an answer. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { presetsOfKind } from '../../config/schema/presets.ts'
import { CommandError, UsageError } from '../command.ts'
import type { Answers } from './answers.ts'
import type { DraftRoute } from './files.ts'
import type { SignInCall } from './sign-in.ts'

/** The folder of its built files, or a preset; `none`. */
export async function askConsole(answers: Answers): Promise<string> {
  const words = ['none', ...presetsOfKind('console')]
  return await answers.ask('console', {
    message: 'The console: the folder of its built files, a preset, or none',
    initial: 'none',
    check: text => {
      const isFolder = existsSync(join(text, 'index.html'))
      return isFolder || words.includes(text) ? undefined : `index.html, or ${words.join(', ')}`
    }
  })
}

/** The URL of the back-end, to which a password goes. */
export async function askUrl(answers: Answers): Promise<string> {
  const isUrl = (text: string) =>
    /^https?:\/\/[^/?#@]+(\/[^?#]*)?$/.test(text) && URL.canParse(text)
  const url = await answers.ask('backend-url', {
    message: 'URL of the back-end',
    check: text => (isUrl(text) ? undefined : 'a URL such as https://shop.internal:8443')
  })
  const isSafe = /^(https:|http:\/\/(localhost|\[::1\]|127\.[\d.]+)([:/]|$))/.test(url)
  if (isSafe || answers.isSet('allow-plain-http')) return url.replace(/\/$/, '')
  throw new CommandError(
    `A password would go to ${url} over plain http, readable on the way. ` +
      'Use https, or allow it with --allow-plain-http.'
  )
}

/** One of several words, the first by default. */
export async function askWord(
  answers: Answers,
  option: string,
  message: string,
  words: readonly string[]
): Promise<string> {
  const list = words.join(', ')
  return await answers.ask(option, {
    message: `${message} (${list})`,
    initial: words[0],
    check: text => (words.includes(text) ? undefined : `one of ${list}`)
  })
}

export async function askSignIn(answers: Answers): Promise<SignInCall> {
  const path = await answers.ask('login-path', {
    message: 'Path of its sign-in (POST), such as /auth/login',
    check: text => (/^\/\S*$/.test(text) ? undefined : 'a path such as /auth/login')
  })
  const fields = await answers.ask('login-fields', {
    message: 'Members of its body: user name, password, and NAME=VALUE for others',
    initial: 'username,password',
    check: text => (/^[^,=]+,[^,=]+(,[^,=]+=[^,]*)*$/.test(text) ? undefined : 'username,password')
  })
  const format = await askWord(answers, 'login-format', 'Its format', ['json', 'form'])
  const [username = '', password = '', ...others] = fields.split(',').map(field => field.trim())
  const extra = Object.fromEntries(others.map(each => each.split('=', 2)))
  const body = { ...extra, [username]: '{username}', [password]: '{password}' }
  return { path, format: format === 'form' ? 'form' : 'json', body }
}

/** The GET calls that the console shall have. */
export async function askRoutes(answers: Answers): Promise<DraftRoute[]> {
  const told = answers.list('route')
  const message = 'GET paths of the back-end that the console needs, separated by blanks'
  const typed = told.length > 0 ? undefined : await answers.optional(message)
  const routes = new Map<string, DraftRoute>()
  for (const text of [...told, ...(typed?.split(/\s+/) ?? [])]) {
    const route = routeFor(
      text,
      [...routes.values()].map(({ name }) => name)
    )
    if (!routes.has(route.publicPath)) routes.set(route.publicPath, route)
  }
  return [...routes.values()]
}

/**
 * A route, named by its path: `/api/v1/sys/orders/list` → `sys-orders`.
 * @param text `PATH` or `PUBLIC=PATH`; a query, as copied from a browser, is left out
 * @param taken names of other routes
 */
export function routeFor(text: string, taken: readonly string[]): DraftRoute {
  const [first = '', second] = (text.split('?', 1)[0] ?? '').split('=', 2)
  const path = second ?? first
  const underApi = /^\/api(\/|$)/.test(path) ? path : `/api${path}`
  // A public path has no slash at its end; a path at the back-end may have one.
  const publicPath = (second === undefined ? underApi : first).replace(/(.)\/$/, '$1')
  if (!path.startsWith('/') || !publicPath.startsWith('/')) {
    throw new UsageError(`--route takes a path such as /orders: "${text}".`)
  }
  const words = path.toLowerCase().match(/[a-z][a-z0-9]*/g) ?? []
  const own = words.filter(word => !/^(api|v\d+|rest|list|page|query|all)$/.test(word))
  const base = own.slice(-2).join('-').slice(0, 50) || 'route'
  let name = base
  for (let number = 2; taken.includes(name); number++) name = `${base}-${number}`
  return { name, publicPath, path }
}
