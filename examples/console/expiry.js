/** Watches over the end of the session: warns of it in time, and leaves when it has come. */
import { call, isSignedOut } from './api.js'
import { clockText, element } from './dom.js'
import { expiryDialog } from './expiry-dialog.js'

const warnMs = 120_000
/** Asking does not keep the session alive; it finds out what other tabs and devices did to it. */
const askEveryMs = 60_000
const askEveryWhileWarningMs = 15_000
const askAgainMs = 5_000

/**
 * Nothing is shown or left before the gateway has confirmed it, unless it cannot be asked: another
 * tab may have used the session since the answers that this page knows.
 * @param signOut resolves with what went wrong, if anything did
 * @param onEnded called with the gateway's answer
 */
export function watchSession({ signOut, onEnded }) {
  /** `end` in milliseconds by this device's clock; `isFinal`: no use puts it off. */
  let ends
  let longestMs = 0
  let askedAt = 0
  let hasFailed = false
  let isAsking = false
  let isDismissed = false
  let watch = new AbortController()
  watch.abort()
  let timer

  const note = element('p', { 'class': 'ending', 'role': 'status', 'data-testid': 'expiry-note' })
  const dialog = expiryDialog({ stay, signOut, dismiss })
  document.body.append(note, dialog.node)

  // A device that slept, or a page that was in the background, may have missed anything.
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) void ask()
  })

  function start() {
    if (!watch.signal.aborted) return
    watch = new AbortController()
    askedAt = Date.now()
    if (ends === undefined) void ask()
    else review()
  }

  function stop() {
    watch.abort()
    clearTimeout(timer)
    ends = undefined
    longestMs = 0
    isAsking = isDismissed = hasFailed = false
    note.replaceChildren()
    dialog.hide()
  }

  function noteTime({ idleIn, absoluteIn }) {
    longestMs = Math.max(longestMs, idleIn * 1000)
    // Rounding can part the two by a second.
    ends = { end: askedAt + idleIn * 1000, isFinal: absoluteIn - idleIn < 2 }
  }

  /** Where sessions are short, a warning at two minutes would never go away. */
  const warnsAt = ({ end, isFinal }) => end - (isFinal ? warnMs : Math.min(warnMs, longestMs / 2))

  /** Compares with the clock, since timers stand still while the device sleeps. */
  function review(wasAsked = false) {
    clearTimeout(timer)
    if (watch.signal.aborted) return
    const now = Date.now()
    const isNear = ends !== undefined && now >= warnsAt(ends)
    if (isNear && (wasAsked || dialog.isOpen())) warn(ends)
    if (!isNear) {
      isDismissed = false
      note.replaceChildren()
      dialog.hide()
    }
    if (!wasAsked && now >= nextAskAt(now, isNear)) void ask()
    const pause = Math.min(askEveryMs, ends === undefined ? Infinity : warnsAt(ends) - now)
    timer = setTimeout(review, isNear ? 1000 : pause)
  }

  function nextAskAt(now, isNear) {
    const isOver = ends !== undefined && now >= ends.end
    if (isOver || (isNear && !dialog.isOpen() && !isDismissed)) {
      return hasFailed ? askedAt + askAgainMs : now
    }
    return document.hidden ? Infinity : askedAt + (isNear ? askEveryWhileWarningMs : askEveryMs)
  }

  function warn({ end, isFinal }) {
    isDismissed &&= isFinal && Date.now() < end
    const text = `Your session ends at ${clockText(end)}. Please save your work.`
    note.replaceChildren(...(isDismissed ? [text] : []))
    if (isDismissed) dialog.hide()
    else dialog.show({ end, isFinal })
  }

  async function ask() {
    if (isAsking || watch.signal.aborted) return
    isAsking = true
    await settle('GET', '/api/session')
    isAsking = false
  }

  async function stay() {
    // Not meanwhile: the two answers could overtake each other.
    isAsking = true
    const failure = await settle('POST', '/api/session/extend')
    isAsking = false
    return failure
  }

  /** Resolves with what is for the user to know. */
  async function settle(method, path) {
    const { signal } = watch
    askedAt = Date.now()
    const answer = await call(path, { method, signal })
    if (signal.aborted) return undefined
    if (!answer.ok && isSignedOut(answer)) {
      stop()
      onEnded(answer)
      return undefined
    }
    hasFailed = !answer.ok
    if (answer.ok) noteTime(answer.data)
    review(true)
    const failure = answer.ok ? undefined : answer
    if (method === 'GET') dialog.complain(failure)
    return failure
  }

  function dismiss() {
    isDismissed = true
    review(true)
  }

  return { start, stop }
}
