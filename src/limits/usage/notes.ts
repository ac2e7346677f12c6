/** Notes beside the numbers of use; the operators' page has each in Chinese too. */

export const usageNotes = {
  none: 'there is no record of it yet',
  busiest: 'of each caller the busiest window of each hour is counted: there may be more',
  alone: 'Redis did not answer: this is what one process saw',
  partial: 'what it counted with another window or kind is left out',
  cut: 'more callers than can be followed at once: the numbers may be too low',
  grew: 'more processes came than counted together: the upper number may be too low',
  burst: 'burst may not be more than max: raise both'
} as const
