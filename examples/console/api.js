/** How the page talks to the gateway: one call, and one form for every way it can end. */

/**
 * @typedef {object} Failure
 * @property {false} ok
 * @property {number} status HTTP status; 0 when there was no answer
 * @property {string} code the stable code, such as `session.none`
 * @property {string} message for people
 * @property {string} requestId for whoever looks into it
 * @property {number | undefined} retryAfter seconds
 */
/** @typedef {{ ok: true, data: any }} Success */
/** @typedef {{ sentAt: number, idleIn: number, absoluteIn: number }} TimeLeft seconds that the session had at `sentAt` or later */

const timeoutMs = 30_000

/** @type {(left: TimeLeft) => void} */
let tell = () => {}

/** The listener hears of every answer that says how long the session has. */
export function onTimeLeft(/** @type {(left: TimeLeft) => void} */ listener) {
  tell = listener
}

/**
 * Never throws: what goes wrong becomes a Failure. Sends the cookie, and nothing else that identifies.
 * @param {string} path
 * @param {{ method?: string, json?: unknown, signal?: AbortSignal }} [options]
 * @returns {Promise<Success | Failure>}
 */
export async function call(path, { method = 'GET', json, signal } = {}) {
  const timeout = AbortSignal.timeout(timeoutMs)
  /** @type {RequestInit} */
  const request = {
    method,
    headers: { accept: 'application/json' },
    signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout])
  }
  if (json !== undefined) {
    request.headers = { 'accept': 'application/json', 'content-type': 'application/json' }
    request.body = JSON.stringify(json)
  }
  const sentAt = Date.now()
  let response
  let body
  try {
    response = await fetch(path, request)
    const [idleIn, absoluteIn] = [
      response.headers.get('x-session-idle-in'),
      response.headers.get('x-session-absolute-in')
    ]
    if (idleIn !== null && absoluteIn !== null) {
      tell({ sentAt, idleIn: Number(idleIn), absoluteIn: Number(absoluteIn) })
    }
    body = parse(await response.text())
  } catch {
    const message = timeout.aborted
      ? 'The gateway did not answer in time. Please try again.'
      : 'The gateway cannot be reached. Check your connection, then try again.'
    return { ok: false, status: 0, code: '', message, requestId: '', retryAfter: undefined }
  }
  if (
    response.ok &&
    body !== undefined &&
    body.ok !== false &&
    body.success !== false &&
    body.status !== 'error'
  ) {
    return { ok: true, data: body.data }
  }
  return {
    ok: false,
    status: response.status,
    code: text(body?.errorCode),
    message:
      text(body?.message) ||
      text(body?.errorMessage) ||
      'The gateway gave an answer that this page cannot read.',
    requestId: text(body?.requestId) || text(response.headers.get('x-request-id')),
    retryAfter: secondsOf(response.headers.get('retry-after'))
  }
}

/** Whether the gateway no longer knows who asks. A back-end's own 401, passed on, says nothing about the session. */
export function isSignedOut(/** @type {Failure} */ { status, code }) {
  return status === 401 && !code.startsWith('upstream.')
}

/** @returns {Record<string, any> | undefined} */
function parse(/** @type {string} */ source) {
  try {
    const value = JSON.parse(source)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

const text = (/** @type {unknown} */ value) => (typeof value === 'string' ? value : '')

/** `Retry-After` is a number of seconds or a date (RFC 9110 §10.2.3). */
function secondsOf(/** @type {string | null} */ value) {
  if (value === null) return undefined
  const seconds = /^\d+$/.test(value)
    ? Number(value)
    : Math.ceil((Date.parse(value) - Date.now()) / 1000)
  return seconds > 0 ? seconds : undefined
}
