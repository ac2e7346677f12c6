import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Document } from 'yaml'
import { presetsOfKind } from '../../config/schema/presets.ts'
import { path as pathKey, url as urlKey } from '../../config/schema/primitives.ts'
import { CommandError, fitting, UsageError } from '../command.ts'
import type { Answers } from '../prompt.ts'
import type { DraftRoute } from './files.ts'

export async function askConsole(answers: Answers) {
  const presets = ['none', ...presetsOfKind('console')]
  const isFolder = (text: string) => existsSync(join(text, 'index.html'))
  const message = 'The console: the folder of its built files, a preset, or none'
  const console = await answers.ask('console', message, {
    initial: 'none',
    check: text =>
      isFolder(text) || presets.includes(text) ? undefined : `index.html, or ${presets.join(', ')}`
  })
  if (presets.includes(console)) return { root: undefined, preset: console }
  return { root: console, preset: await answers.word('console-preset', 'Its preset', presets) }
}

export async function askUrl(answers: Answers): Promise<string> {
  const message = 'URL of the back-end, such as https://shop.internal:8443'
  const url = await answers.ask('backend-url', message, { check: fitting(urlKey('')) })
  const isSafe = /^(https:|http:\/\/(localhost|\[::1\]|127\.[\d.]+)([:/]|$))/.test(url)
  if (isSafe || answers.values['allowPlainHttp'] === true) return url.replace(/\/$/, '')
  const problem = `A password would go to ${url} over plain http, readable on the way`
  throw new CommandError(`${problem}: use https, or --allow-plain-http.`)
}

/** A call as config writes it, with its query apart. */
export function callOf(text: string) {
  const [path = '', search] = text.split('?', 2)
  const query = search === undefined ? undefined : Object.fromEntries(new URLSearchParams(search))
  return { path, query }
}

/** @param text `PATH` or `METHOD PATH` */
export function logoutOf(text: string) {
  const [place = '', method = 'POST'] = text.split(' ', 2).toReversed()
  return { ...callOf(place), method }
}

export const userQuestion = 'An account of the back-end: user name'

export async function askSignIn(answers: Answers) {
  const told = await answers.ask('login-path', 'Path of its sign-in (POST), such as /auth/login', {
    check: each => fitting(pathKey(''))(callOf(each).path)
  })
  const message = 'Members of its body: user name, password, and NAME=VALUE for others'
  const fields = await answers.ask('login-fields', message, {
    initial: 'username,password',
    check: text => (/^[^,=]+,[^,=]+(,[^,=]+=[^,]*)*$/.test(text) ? undefined : 'username,password')
  })
  const format = await answers.word('login-format', 'Its format', ['json', 'form'] as const)
  const [username = '', password = '', ...others] = fields.split(',').map(field => field.trim())
  const values = [`${username}={username}`, `${password}={password}`, ...others]
  const body = new Document({})
  for (const [name = '', value] of values.map(each => each.split('=', 2))) {
    body.setIn(format === 'json' ? name.split('.') : [name], value)
  }
  return { ...callOf(told), format, body: body.toJS() as object }
}

export async function askRoutes(answers: Answers): Promise<DraftRoute[]> {
  const message =
    'GET paths of the back-end that the console needs, separated by blanks (empty: none)'
  const told = answers.values['route'] as string[] | undefined
  const paths = told ?? (await answers.ask('routes', message, { initial: '' })).match(/\S+/g)
  const routes: DraftRoute[] = []
  for (const text of paths ?? []) {
    const taken = routes.map(({ name }) => name)
    const route = routeFor(text, taken)
    if (routes.every(each => each.publicPath !== route.publicPath)) routes.push(route)
  }
  return routes
}

/**
 * A route, named by its path: `/api/v1/sys/orders/list` → `sys-orders`.
 * @param text `PATH` or `PUBLIC=PATH`; a query, as copied from a browser, is left out
 */
export function routeFor(text: string, taken: readonly string[]): DraftRoute {
  const [first = '', second] = (text.split('?', 1)[0] ?? '').split('=', 2)
  const path = second ?? first
  const underApi = /^\/api(\/|$)/.test(path) ? path : `/api${path}`
  // A public path has no slash at its end and no colon; a path at the back-end may have them.
  const ownPath = underApi.replaceAll(/(?<!\/):+/g, '-')
  const publicPath = (second === undefined ? ownPath : first).replace(/(.)\/$/, '$1')
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
