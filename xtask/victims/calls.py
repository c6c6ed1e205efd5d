"""Calls, exceptions and generators in a function that is watched; prints the sum."""
import sys


def f(n):
    if n % 100 == 99:
        raise ValueError(n)
    return sum(part for part in (n, n + 1)) - n


def main():
    calls, total = int(sys.argv[1]) if len(sys.argv) > 1 else 1000, 0
    for n in range(calls):
        try:
            total += f(n)
        except ValueError:
            total += 1
    print(total)


main()
