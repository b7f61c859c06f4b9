package dev.stillwater.strimzi;

import java.time.Duration;

/**
 * How long a reconciliation is held back.
 *
 * @param refusesAfter until it is refused; each refusal counts as a failed reconciliation
 * @param longest until one drain holds nothing back any more
 * @param pause between two looks at the Lease
 */
record Patience(Duration refusesAfter, Duration longest, Duration pause) {
    /**
     * The alert StrimziReconciliationFails fires at more than two failures in half an hour: with a wait of
     * fifteen minutes there are never more, however many drains follow each other.
     */
    static final Patience DEFAULT =
            new Patience(Duration.ofMinutes(15), Duration.ofMinutes(30), Duration.ofSeconds(5));
}
