import { expect, test } from 'vitest'
import { createBudget } from '../src/replay/budget.ts'

/** How many of these are built before the budget is exceeded. */
function countBuilt(build: (budget: ReturnType<typeof createBudget>) => boolean): number {
  const budget = createBudget()
  let built = 0
  while (build(budget)) built++
  expect(budget.isExceeded()).toBe(true)
  budget.reset()
  expect(build(budget), 'on the next page').toBe(true)
  return built
}

test('a page has a limited number of nodes, frames, filters and style rules', () => {
  expect(countBuilt((budget) => budget.node())).toBe(300_000)
  expect(countBuilt((budget) => budget.element('iframe'))).toBe(100)
  expect(countBuilt((budget) => budget.element('filter'))).toBe(200)
  const rules = 'b { top: 1px }'.repeat(1_000)
  expect(countBuilt((budget) => budget.css(rules) === rules)).toBe(100)
})

test('of selectors that look at the whole page only a few are matched', () => {
  const rule = 'i:has(b):HAS(+ i > b) b { top: 1px }'
  expect(countBuilt((budget) => budget.css(rule) === rule)).toBe(250)
  const budget = createBudget()
  for (let time = 0; time < 250; time++) budget.css(rule)
  expect(budget.css(rule)).not.toMatch(/:has/i)
  expect(budget.css('b { top: 1px }')).toBe('b { top: 1px }')
})
