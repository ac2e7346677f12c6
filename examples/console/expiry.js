/** Watches over the end of the session: warns of it in time, and leaves when it has come. */
import { call, isSignedOut, onTimeLeft } from './api.js'
import { clockText, element } from './dom.js'
import { expiryDialog } from './expiry-dialog.js'
/** @import { Failure, TimeLeft } from './api.js' */

const warnMs = 120_000
/** Asking does not keep the session alive; it finds out what other tabs and devices did to it. */
const askEveryMs = 60_000
const askEveryWhileWarningMs = 15_000
const askAgainMs = 5_000

/**
 * @typedef {object} Ends in milliseconds since the epoch, by this device's clock
 * @property {number} sentAt
 * @property {number} end
 * @property {boolean} isFinal whether no use puts it off
 */

/**
 * Nothing is shown or left before the gateway has confirmed it, unless it cannot be asked: the times that the page
 * knows are of its own answers, and another tab may have used the session since.
 * @param {object} options
 * @param {() => Promise<Failure | undefined>} options.signOut
 * @param {(failure: Failure) => void} options.onEnded
 */
export function watchSession({ signOut, onEnded }) {
  /** @type {Ends | undefined} */
  let ends
  let longestMs = 0
  let askedAt = 0
  let hasFailed = false
  let isAsking = false
  let isDismissed = false
  let watch = new AbortController()
  watch.abort()
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer

  const note = element('p', { 'class': 'ending', 'role': 'status', 'data-testid': 'expiry-note' })
  const dialog = expiryDialog({ stay, signOut, dismiss })
  document.body.append(note, dialog.node)

  onTimeLeft(noteTime)
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

  /** Answers can overtake each other: what was asked later counts. */
  function noteTime(/** @type {TimeLeft} */ { sentAt, idleIn, absoluteIn }) {
    if (
      !Number.isFinite(idleIn) ||
      !Number.isFinite(absoluteIn) ||
      (ends !== undefined && sentAt < ends.sentAt)
    ) {
      return
    }
    longestMs = Math.max(longestMs, idleIn * 1000)
    // Rounding can part the two by a second.
    ends = { sentAt, end: sentAt + idleIn * 1000, isFinal: absoluteIn - idleIn < 2 }
  }

  /** Where sessions are short, a warning at two minutes would never go away. */
  const warnsAt = (/** @type {Ends} */ { end, isFinal }) =>
    end - (isFinal ? warnMs : Math.min(warnMs, longestMs / 2))

  /** Compares with the clock, since timers stand still while the device sleeps. */
  function review(wasAsked = false) {
    clearTimeout(timer)
    if (watch.signal.aborted) return
    const now = Date.now()
    const isNear = ends !== undefined && now >= warnsAt(ends)
    if (ends !== undefined && isNear && (wasAsked || dialog.isOpen())) warn(ends)
    if (!isNear) {
      isDismissed = false
      note.replaceChildren()
      dialog.hide()
    }
    if (!wasAsked && now >= nextAskAt(now, isNear)) void ask()
    timer = setTimeout(
      review,
      isNear ? 1000 : Math.min(askEveryMs, ends === undefined ? Infinity : warnsAt(ends) - now)
    )
  }

  /**
   * @param {number} now
   * @param {boolean} isNear
   */
  function nextAskAt(now, isNear) {
    const isOver = ends !== undefined && now >= ends.end
    if (isOver || (isNear && !dialog.isOpen() && !isDismissed)) {
      return hasFailed ? askedAt + askAgainMs : now
    }
    return document.hidden ? Infinity : askedAt + (isNear ? askEveryWhileWarningMs : askEveryMs)
  }

  function warn(/** @type {Ends} */ { end, isFinal }) {
    isDismissed &&= isFinal && Date.now() < end
    note.replaceChildren(
      ...(isDismissed ? [`Your session ends at ${clockText(end)}. Please save your work.`] : [])
    )
    if (isDismissed) dialog.hide()
    else dialog.show({ end, isFinal })
  }

  /** @returns {Promise<void>} */
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

  /**
   * @param {string} method
   * @param {string} path
   * @returns {Promise<Failure | undefined>} what is for the user to know
   */
  async function settle(method, path) {
    const { signal } = watch
    askedAt = Date.now()
    const sentAt = askedAt
    const answer = await call(path, { method, signal })
    if (signal.aborted) return undefined
    if (!answer.ok && isSignedOut(answer)) {
      stop()
      onEnded(answer)
      return undefined
    }
    hasFailed = !answer.ok
    // The header fields may be switched off.
    if (answer.ok) {
      noteTime({
        sentAt,
        idleIn: Number(answer.data?.idleIn),
        absoluteIn: Number(answer.data?.absoluteIn)
      })
    }
    review(true)
    if (method === 'GET') dialog.complain(answer.ok ? undefined : answer)
    return answer.ok ? undefined : answer
  }

  function dismiss() {
    isDismissed = true
    review(true)
  }

  return { start, stop }
}
