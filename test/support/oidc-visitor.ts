/** A browser that signs in at an OpenID provider, as far as cookies, redirects and our pages go. */
import { oidcPath, plainBrowser, type TestProvider } from './oidc-provider.ts'

export type Visitor = ReturnType<typeof oidcVisitor>

/** @param gatewayUrl which may change with each request, as behind a load balancer */
export function oidcVisitor(gatewayUrl: () => string, provider: TestProvider) {
  const { jar, ask: send } = plainBrowser()
  const atProvider = provider.browser()

  /** `next`: where a redirect leads, or a page goes on by itself. */
  async function ask(path: string, headers: Record<string, string> = {}) {
    const isCrossSite = headers['sec-fetch-site'] === 'cross-site'
    const usual = {
      'sec-fetch-site': 'same-origin',
      'sec-fetch-dest': 'document',
      'accept': 'text/html'
    }
    const response = await send(
      new URL(path, gatewayUrl()),
      { headers: { ...usual, ...headers } },
      // The cookies of sessions are strict.
      name => !isCrossSite || !/^console_(?:sid|ops)$/.test(name)
    )
    const text = await response.text()
    const [, refresh = ''] = /http-equiv="refresh" content="0;url=([^"]*)"/.exec(text) ?? []
    const next = response.headers.get('location') ?? refresh.replaceAll('&#38;', '&')
    return { status: response.status, headers: response.headers, text, next }
  }

  const start = (returnTo = '/') => ask(`${oidcPath}?returnTo=${encodeURIComponent(returnTo)}`)
  /** From where the provider sent the browser to the end. */
  const comeBack = async (callback: string) => {
    const { pathname, search } = new URL(callback)
    const page = await ask(pathname + search, { 'sec-fetch-site': 'cross-site' })
    return await ask(page.next)
  }

  return {
    jar,
    ask,
    start,
    atProvider,
    comeBack,
    /** @returns what `finish` answers */
    signIn: async (account: string, returnTo?: string) =>
      await comeBack(await atProvider((await start(returnTo)).next, account)),
    /** A call of the console. */
    call: async (path: string) => {
      const called = await ask(path, { 'sec-fetch-dest': 'empty', 'accept': 'application/json' })
      return { ...called, json: JSON.parse(called.text) }
    }
  }
}
