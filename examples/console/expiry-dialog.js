/** The dialog that says that the session is about to end. */
import { clockText, element, named } from './dom.js'
import { reference, setBusy, setIdle } from './panels.js'
/** @import { Failure } from './api.js' */

/** At these many seconds left it is said aloud, and at no others. */
const spokenAt = [60, 30, 10]

/**
 * Every action but `dismiss` resolves with what went wrong, if anything did.
 * @param {object} actions
 * @param {() => Promise<Failure | undefined>} actions.stay
 * @param {() => Promise<Failure | undefined>} actions.signOut
 * @param {() => void} actions.dismiss
 */
export function expiryDialog({ stay, signOut, dismiss }) {
  const title = element('h2', { id: 'expiry-title' })
  const text = element('p', { id: 'expiry-text' })
  // A timer is not read aloud by itself; the line below is, now and then.
  const left = element('strong', { ...named('expiry-left'), class: 'left', role: 'timer' })
  const spoken = element('p', { 'class': 'hidden', 'aria-live': 'polite' })
  const problem = element('p', { ...named('expiry-error'), class: 'alert', role: 'alert' })
  const stayButton = element(
    'button',
    { ...named('expiry-stay'), type: 'button' },
    'Stay signed in'
  )
  const goOnButton = element(
    'button',
    { ...named('expiry-continue'), type: 'button' },
    'Continue until then'
  )
  const signOutButton = element(
    'button',
    { ...named('expiry-sign-out'), type: 'button', class: 'quiet' },
    'Sign out'
  )
  const node = element(
    'dialog',
    {
      ...named('expiry-dialog'),
      'role': 'alertdialog',
      'aria-labelledby': 'expiry-title',
      'aria-describedby': 'expiry-text'
    },
    title,
    text,
    spoken,
    problem,
    element('div', { class: 'actions' }, stayButton, goOnButton, signOutButton)
  )

  let isWanted = false
  let isBusy = false
  /** @type {boolean | undefined} */
  let isFinal
  let spokenLeft = 0

  function show(/** @type {{ end: number, isFinal: boolean }} */ ending) {
    if (!isWanted || isFinal !== ending.isFinal) word(ending)
    const seconds = Math.max(0, Math.ceil((ending.end - Date.now()) / 1000))
    const written = leftText(seconds)
    if (left.textContent !== written) left.textContent = written
    const due = spokenAt.findLast(each => seconds <= each)
    if (due !== undefined && due !== spokenLeft) spoken.textContent = `${due} seconds left.`
    spokenLeft = due ?? 0
    if (isWanted) return
    isWanted = true
    open()
  }

  /** Says what it is about; the text around the time stays as it is. */
  function word(/** @type {{ end: number, isFinal: boolean }} */ ending) {
    isFinal = ending.isFinal
    title.textContent = isFinal ? 'Your session ends soon' : 'Are you still there?'
    text.replaceChildren(
      ...(isFinal
        ? [
            `It has almost reached its longest duration and ends at ${clockText(ending.end)}, in `,
            left,
            '. Please save your work; then you can sign in again.'
          ]
        : ['You have not used the console for a while. You will be signed out in ', left, '.'])
    )
    problem.replaceChildren()
    stayButton.hidden = isFinal
    goOnButton.hidden = !isFinal
    if (isWanted) primary().focus()
  }

  const primary = () => (isFinal === true ? goOnButton : stayButton)

  function open() {
    if (!node.open) node.showModal()
    primary().focus()
  }

  function hide() {
    isWanted = false
    spoken.textContent = ''
    spokenLeft = 0
    problem.replaceChildren()
    node.close()
  }

  function complain(/** @type {Failure | undefined} */ failure) {
    problem.replaceChildren(
      ...(failure === undefined ? [] : [failure.message, ...reference(failure)])
    )
  }

  /**
   * @param {HTMLButtonElement} button
   * @param {string} idle
   * @param {string} busy
   * @param {() => Promise<Failure | undefined>} action
   */
  async function run(button, idle, busy, action) {
    if (isBusy) return
    isBusy = true
    problem.replaceChildren()
    setBusy(button, busy)
    const failure = await action()
    isBusy = false
    setIdle(button, idle)
    if (failure !== undefined) complain(failure)
  }

  const staying = () => run(stayButton, 'Stay signed in', 'Staying…', stay)
  stayButton.addEventListener('click', () => {
    void staying()
  })
  goOnButton.addEventListener('click', dismiss)
  signOutButton.addEventListener('click', () => {
    void run(signOutButton, 'Sign out', 'Signing out…', signOut)
  })

  /** Whoever presses Escape wants to go on. */
  const onEscape = (/** @type {Event} */ event) => {
    event.preventDefault()
    if (isFinal === true) dismiss()
    else void staying()
  }
  node.addEventListener('keydown', event => {
    if (event.key === 'Escape') onEscape(event)
  })
  node.addEventListener('cancel', onEscape)
  // Browsers let nobody hold a dialog open at the second try.
  node.addEventListener('close', () => {
    if (isWanted) open()
  })

  return { node, show, hide, complain, isOpen: () => isWanted }
}

function leftText(/** @type {number} */ seconds) {
  const minutes = Math.floor(seconds / 60)
  return minutes === 0 ? `${seconds} s` : `${minutes} min ${seconds % 60} s`
}
