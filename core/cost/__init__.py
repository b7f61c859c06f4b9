"""Money: from AWS's price list to the price book."""
