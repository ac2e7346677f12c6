/** What runs in a browser's page: the consoles, on the page's own fetch, cookies and storage. */
import { consoles } from '../../consoles/consoles.ts'
import { OpenConsole } from '../../consoles/driver.ts'
import type { Values } from '../../consoles/page.ts'

const window = globalThis as unknown as {
  readonly document: { cookie: string }
  readonly localStorage: {
    readonly getItem: (name: string) => string | null
    readonly setItem: (name: string, value: string) => void
    readonly removeItem: (name: string) => void
  }
  openConsole: (name: string) => OpenConsole
}

const cookies: Values = {
  get: name => {
    const pair = window.document.cookie.split('; ').find(each => each.startsWith(`${name}=`))
    return pair === undefined ? undefined : decodeURIComponent(pair.slice(name.length + 1))
  },
  set: (name, value, expires) => {
    const end = expires === undefined ? '' : `; expires=${new Date(expires).toUTCString()}`
    window.document.cookie = `${name}=${encodeURIComponent(value)}; path=/${end}`
  },
  remove: name => {
    window.document.cookie = `${name}=; path=/; max-age=0`
  }
}

const page = {
  fetch: (path: string, init?: RequestInit) => fetch(path, init),
  cookies,
  localStorage: {
    get: (name: string) => window.localStorage.getItem(name) ?? undefined,
    set: (name: string, value: string) => window.localStorage.setItem(name, value),
    remove: (name: string) => window.localStorage.removeItem(name)
  },
  now: () => Date.now()
}

window.openConsole = name => {
  const spec = consoles.find(each => each.name === name)
  if (spec === undefined) throw new Error(`There is no console ${name}.`)
  return new OpenConsole(spec, page)
}
