/** The dialog that says that the session is about to end. */
import { button, clockText, element, failureText, named } from './dom.js'

/** Every action but `dismiss` resolves with what went wrong, if anything did. */
export function expiryDialog({ stay, signOut, dismiss }) {
  const title = element('h2', { id: 'expiry-title' })
  const text = element('p', { id: 'expiry-text' })
  const left = element('strong', { ...named('expiry-left'), role: 'timer' })
  const problem = element('p', { ...named('expiry-error'), class: 'alert', role: 'alert' })
  const complain = failure =>
    problem.replaceChildren(...(failure === undefined ? [] : failureText(failure)))
  const act = action => async () => complain(await action())
  const stayButton = button('expiry-stay', 'Stay signed in', act(stay))
  const goOnButton = button('expiry-continue', 'Continue until then', dismiss)
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
    problem,
    stayButton,
    goOnButton,
    button('expiry-sign-out', 'Sign out', act(signOut), { class: 'quiet' })
  )
  let isWanted = false
  let isFinal

  function show(ending) {
    if (!isWanted || isFinal !== ending.isFinal) word(ending)
    left.textContent = leftText(Math.max(0, Math.ceil((ending.end - Date.now()) / 1000)))
    isWanted = true
    open()
  }

  function word({ end, isFinal: ends }) {
    isFinal = ends
    title.textContent = ends ? 'Your session ends soon' : 'Are you still there?'
    const before = ends
      ? `It has almost reached its longest duration and ends at ${clockText(end)}, in `
      : 'You have not used the console for a while. You will be signed out in '
    text.replaceChildren(before, left, ends ? '. Please save your work.' : '.')
    problem.replaceChildren()
    stayButton.hidden = ends
    goOnButton.hidden = !ends
  }

  function open() {
    if (node.open) return
    node.showModal()
    ;(isFinal ? goOnButton : stayButton).focus()
  }

  function hide() {
    isWanted = false
    problem.replaceChildren()
    node.close()
  }

  // Whoever presses Escape wants to go on.
  node.addEventListener('cancel', event => {
    event.preventDefault()
    ;(isFinal ? goOnButton : stayButton).click()
  })

  return { node, show, hide, complain, isOpen: () => isWanted }
}

function leftText(seconds) {
  const minutes = Math.floor(seconds / 60)
  return minutes === 0 ? `${seconds} s` : `${minutes} min ${seconds % 60} s`
}
