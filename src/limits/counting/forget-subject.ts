/** Removes what is kept of one caller: all keys that begin with its subject. */
interface Kept {
  readonly keys: () => Iterable<string>
  readonly delete: (key: string) => unknown
}

export function forgetSubject(kept: Kept, subject: string): void {
  for (const key of [...kept.keys()]) if (key.startsWith(subject)) kept.delete(key)
}
