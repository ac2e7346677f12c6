/** The stages of public routes whose upstream keeps a captcha's answer in a session of its own. */
import type { CaptchaJar } from '../hooks/captcha-jar.ts'
import type { RequestStage } from './request-stages.ts'
import type { ResponseStage } from './response-stages.ts'

/** The back-end gets the cookies that it has set with an earlier picture. */
export function sendCaptchaStage(jar: CaptchaJar): RequestStage {
  return function sendCaptchaCookies({ request, headers }) {
    const cookies = jar.read(request)
    if (cookies === '') return
    const { cookie } = headers
    headers['cookie'] = cookie === undefined ? cookies : `${String(cookie)}; ${cookies}`
  }
}

/** The browser gets the back-end's cookies, sealed; no cache may hold them. */
export function keepCaptchaStage(jar: CaptchaJar): ResponseStage {
  return function keepCaptchaCookies({ request, reply, responseHeaders }, { headers }) {
    const sealed = jar.write(jar.read(request), headers['set-cookie'])
    if (sealed === undefined) return false
    reply.header('set-cookie', sealed).header('cache-control', 'no-store')
    // These win where the response is sent in one write.
    if (responseHeaders !== undefined) {
      const passed = [responseHeaders['set-cookie'] ?? []].flat()
      Object.assign(responseHeaders, {
        'set-cookie': [...passed, sealed],
        'cache-control': 'no-store'
      })
    }
    return false
  }
}
