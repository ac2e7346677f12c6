/** A value that somebody types: it is used once they pause. */
import { useEffect, useState } from 'preact/hooks'

const pauseMs = 250

export function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value)
  const text = JSON.stringify(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(() => value), pauseMs)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}
