/** What runs in a browser's page: the drivers, on the page's own fetch, cookies and storage. */
import { consoles } from './consoles.ts'
import type { OpenConsole, Page, PageCookies, PageStorage } from './driver.ts'

interface Window {
  readonly document: { cookie: string }
  readonly localStorage: PageStorage
  openConsole: (name: string) => OpenConsole
}

const window = globalThis as unknown as Window

const cookies: PageCookies = {
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

const page: Page = {
  fetch: (path, init) => fetch(path, init),
  cookies,
  localStorage: window.localStorage,
  now: () => Date.now()
}

window.openConsole = name => {
  const driver = consoles.find(each => each.name === name)
  if (driver === undefined) throw new Error(`There is no driver ${name}.`)
  return driver.open(page)
}
