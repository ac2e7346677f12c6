/** Tabs that nobody looks at give their connections back: a browser has six to one host. */

const hiddenMs = 300_000

/**
 * Calls `pause` when the tab has been hidden for minutes, and `resume` when it is shown after that.
 * @returns what ends it
 */
export function pauseWhileHidden(pause: () => void, resume: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let isPaused = false
  const onChange = () => {
    clearTimeout(timer)
    if (document.hidden) {
      timer = setTimeout(() => {
        isPaused = true
        pause()
      }, hiddenMs)
    } else if (isPaused) {
      isPaused = false
      resume()
    }
  }
  document.addEventListener('visibilitychange', onChange)
  onChange()
  return () => {
    clearTimeout(timer)
    document.removeEventListener('visibilitychange', onChange)
  }
}
