/** How the page talks to the gateway: one call, and one form for every way it can end. */

const timeoutMs = 30_000

/**
 * Never throws: what goes wrong becomes `{ ok: false, status, code, message, requestId, retryAfter }`,
 * with status 0 where there was no answer.
 */
export async function call(path, { method = 'GET', json, signal } = {}) {
  const timeout = AbortSignal.timeout(timeoutMs)
  const headers = { accept: 'application/json' }
  if (json !== undefined) headers['content-type'] = 'application/json'
  const request = {
    method,
    headers,
    body: json === undefined ? undefined : JSON.stringify(json),
    signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout])
  }
  let response
  let body
  try {
    response = await fetch(path, request)
    body = await response.json().catch(() => undefined)
  } catch {
    const message = timeout.aborted
      ? 'The gateway did not answer in time. Please try again.'
      : 'The gateway cannot be reached. Check your connection, then try again.'
    return { ok: false, status: 0, code: '', message, requestId: '', retryAfter: undefined }
  }
  if (response.ok && body !== undefined && body.ok !== false) return { ok: true, data: body.data }
  return {
    ok: false,
    status: response.status,
    code: body?.errorCode ?? '',
    message: body?.message ?? 'The gateway gave an answer that this page cannot read.',
    requestId: body?.requestId ?? '',
    retryAfter: response.headers.get('retry-after') ?? undefined
  }
}

/** Whether the gateway no longer knows who asks. A back-end's own 401 says nothing of that. */
export function isSignedOut({ status, code }) {
  return status === 401 && !code.startsWith('upstream.')
}
