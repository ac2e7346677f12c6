/** Long work in steps, so that a gateway that reads its config answers requests in between. */

/** Yields after each step that may take milliseconds. */
export type Steps<T> = Generator<void, T>

/** All steps at once. */
export function runSteps<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}
